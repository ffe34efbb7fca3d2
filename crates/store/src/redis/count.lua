-- Adds the messages that do not exist yet, and a turn and its counts, unless a turn with this id exists.
-- KEYS: waypoints, messages, turns, ends, head, folds, fold order, pin, log, log head, undelivered, exchanges, generation.
-- ARGV: time to live, that of the generation, generation, id, record, milliseconds since the epoch,
--       end (empty if none), number of counters, number of labels, then name and amount of each counter, name and value of each
--       label, and id and record of each message.
if (redis.call('GET', KEYS[#KEYS]) or '0') ~= ARGV[3] then
  return -1
end
local labels = 10 + 2 * tonumber(ARGV[8])
local messages = labels + 2 * tonumber(ARGV[9])
for i = messages, #ARGV, 2 do
  redis.call('HSETNX', KEYS[2], ARGV[i], ARGV[i + 1])
end
if redis.call('HSETNX', KEYS[3], ARGV[4], ARGV[5]) == 1 then
  local head = KEYS[5]
  local is_new = 0
  if ARGV[7] ~= '' then
    is_new = redis.call('SADD', KEYS[4], ARGV[7])
  end
  redis.call('HINCRBY', head, 'c:requests', 1)
  redis.call('HINCRBY', head, 'c:turns', is_new)
  for i = 10, labels - 1, 2 do
    redis.call('HINCRBY', head, 'c:' .. ARGV[i], ARGV[i + 1])
  end
  for i = labels, messages - 1, 2 do
    redis.call('HSET', head, 'l:' .. ARGV[i], ARGV[i + 1])
  end
  local at = tonumber(ARGV[6])
  local first = redis.call('HGET', head, 'first')
  if not first or at < tonumber(first) then
    redis.call('HSET', head, 'first', ARGV[6])
  end
  local last = redis.call('HGET', head, 'last')
  if not last or at > tonumber(last) then
    redis.call('HSET', head, 'last', ARGV[6])
  end
end
for i = 1, #KEYS - 1 do
  redis.call('PEXPIRE', KEYS[i], ARGV[1])
end
redis.call('PEXPIRE', KEYS[#KEYS], ARGV[2])
return 1
