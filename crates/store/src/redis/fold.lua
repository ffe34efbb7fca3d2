-- Appends a fold, unless its prefix has one. Returns whether the stored record equals this one,
-- or -1 if the conversation was deleted since.
-- KEYS: waypoints, messages, turns, ends, head, folds, fold order, pin, log, log head, undelivered, exchanges, generation.
-- ARGV: time to live, that of the generation, generation, number of folds to keep, covered prefix, record.
if (redis.call('GET', KEYS[#KEYS]) or '0') ~= ARGV[3] then
  return -1
end
local folds, order = KEYS[6], KEYS[7]
local kept = redis.call('HGET', folds, ARGV[5])
if not kept then
  -- Fails before anything is written if the key has another type.
  redis.call('LRANGE', order, 0, 0)
  -- A full server refuses a script only at its first write, so the first write must be one that it refuses.
  redis.call('HSET', folds, ARGV[5], ARGV[6])
  -- A server that is short of memory may have evicted the folds but not their order.
  redis.call('LREM', order, 0, ARGV[5])
  local excess = redis.call('RPUSH', order, ARGV[5]) - tonumber(ARGV[4])
  for _ = 1, excess do
    redis.call('HDEL', folds, redis.call('LPOP', order))
  end
end
for i = 1, #KEYS - 1 do
  redis.call('PEXPIRE', KEYS[i], ARGV[1])
end
redis.call('PEXPIRE', KEYS[#KEYS], ARGV[2])
return (not kept or kept == ARGV[6]) and 1 or 0
