-- Removes expired conversations from the index, except those that had a turn since they were read.
-- KEYS: index. ARGV: conversation and time of each.
for i = 1, #ARGV, 2 do
  local at = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if at and tonumber(at) == tonumber(ARGV[i + 1]) then
    redis.call('ZREM', KEYS[1], ARGV[i])
  end
end
return 1
