-- Adds a turn and its counts, unless a turn with this id exists.
-- KEYS: waypoints, messages, turns, ends, head, folds, fold order, pin.
-- ARGV: time to live, id, record, milliseconds since the epoch, end (empty if none), number of counters,
--       then name and amount of each counter, then name and value of each label.
if redis.call('HSETNX', KEYS[3], ARGV[2], ARGV[3]) == 1 then
  local head = KEYS[5]
  local is_new = 0
  if ARGV[5] ~= '' then
    is_new = redis.call('SADD', KEYS[4], ARGV[5])
  end
  redis.call('HINCRBY', head, 'c:requests', 1)
  redis.call('HINCRBY', head, 'c:turns', is_new)
  local labels = 7 + 2 * tonumber(ARGV[6])
  for i = 7, labels - 1, 2 do
    redis.call('HINCRBY', head, 'c:' .. ARGV[i], ARGV[i + 1])
  end
  for i = labels, #ARGV, 2 do
    redis.call('HSET', head, 'l:' .. ARGV[i], ARGV[i + 1])
  end
  local at = tonumber(ARGV[4])
  local first = redis.call('HGET', head, 'first')
  if not first or at < tonumber(first) then
    redis.call('HSET', head, 'first', ARGV[4])
  end
  local last = redis.call('HGET', head, 'last')
  if not last or at > tonumber(last) then
    redis.call('HSET', head, 'last', ARGV[4])
  end
end
for i = 1, #KEYS do
  redis.call('PEXPIRE', KEYS[i], ARGV[1])
end
return 1
