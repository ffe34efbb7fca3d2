-- Appends a fold, unless its prefix has one. Returns whether the stored record equals this one.
-- KEYS: waypoints, messages, turns, ends, head, folds, fold order, pin.
-- ARGV: time to live, number of folds to keep, covered prefix, record.
local folds, order = KEYS[6], KEYS[7]
local kept = redis.call('HGET', folds, ARGV[3])
if not kept then
  -- Fails before anything is written if the key has another type.
  redis.call('LRANGE', order, 0, 0)
  -- A full server refuses a script only at its first write, so the first write must be one that it refuses.
  redis.call('HSET', folds, ARGV[3], ARGV[4])
  -- A server that is short of memory may have evicted the folds but not their order.
  redis.call('LREM', order, 0, ARGV[3])
  local excess = redis.call('RPUSH', order, ARGV[3]) - tonumber(ARGV[2])
  for _ = 1, excess do
    redis.call('HDEL', folds, redis.call('LPOP', order))
  end
end
for i = 1, #KEYS do
  redis.call('PEXPIRE', KEYS[i], ARGV[1])
end
return (not kept or kept == ARGV[4]) and 1 or 0
