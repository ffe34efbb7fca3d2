-- Appends a turn to the log, with its messages and a waypoint, if the head is the expected one, and notes that its client does
-- not have its answer yet.
-- Returns 1 if it is there, 0 if another turn was first, -1 if the conversation was deleted since.
-- KEYS: waypoints, messages, turns, ends, head, folds, fold order, pin, log, log head, undelivered, exchanges, generation.
-- ARGV: time to live, that of the generation, generation, expected head (empty if none), new head,
--       whether it replaces the last turn (1 or 0), the turn, number of waypoints to keep,
--       whether there is a waypoint (1 or 0), the waypoint, then id and record of each message.
if (redis.call('GET', KEYS[#KEYS]) or '0') ~= ARGV[3] then
  return -1
end
local log, head = KEYS[9], redis.call('GET', KEYS[10]) or ''
if head ~= ARGV[5] then
  if head ~= ARGV[4] then
    return 0
  end
  -- A full server refuses a script only at its first write, so the first write must be one that it refuses.
  if ARGV[6] == '1' then
    redis.call('LSET', log, -1, ARGV[7])
  else
    redis.call('RPUSH', log, ARGV[7])
  end
  redis.call('SET', KEYS[10], ARGV[5])
  for i = 11, #ARGV, 2 do
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
  end
  if ARGV[9] == '1' then
    redis.call('RPUSH', KEYS[1], ARGV[10])
    redis.call('LTRIM', KEYS[1], -tonumber(ARGV[8]), -1)
  end
  -- Not if the turn is there already: a write that arrives late must not undo what was noted since.
  redis.call('SET', KEYS[11], ARGV[5])
end
for i = 1, #KEYS - 1 do
  redis.call('PEXPIRE', KEYS[i], ARGV[1])
end
redis.call('PEXPIRE', KEYS[#KEYS], ARGV[2])
return 1
