-- Adds a fold behind all others, unless there is one for what it covers. Whether the one that is kept is this.
-- KEYS: waypoints, messages, turns, ends, head, folds, their order, what is pinned.
-- ARGV: time to live, folds to keep, what it covers, record.
local folds, order = KEYS[6], KEYS[7]
local kept = redis.call('HGET', folds, ARGV[3])
if not kept then
  -- Fails here, before anything is written, if something else stands there.
  redis.call('LRANGE', order, 0, 0)
  -- The first write decides whether a full server lets the others through, so it must be one that a full server refuses.
  redis.call('HSET', folds, ARGV[3], ARGV[4])
  -- A server that is short of memory may have dropped the folds and left their order.
  redis.call('LREM', order, 0, ARGV[3])
  local over = redis.call('RPUSH', order, ARGV[3]) - tonumber(ARGV[2])
  for _ = 1, over do
    redis.call('HDEL', folds, redis.call('LPOP', order))
  end
end
for i = 1, #KEYS do
  redis.call('PEXPIRE', KEYS[i], ARGV[1])
end
return (not kept or kept == ARGV[4]) and 1 or 0
