-- Gives the right to fold to whoever asks, unless another has it. Whether the one who asks has it now.
-- Not a plain SET NX: sent again after a lost answer, that would refuse the very holder that it let in.
-- KEYS: claim. ARGV: holder, lease.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
