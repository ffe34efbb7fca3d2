-- Notes that the client did not get the end of the last turn, if the head is still this one.
-- Returns -1 if the conversation was deleted since.
-- KEYS: waypoints, messages, turns, ends, head, folds, fold order, pin, log, log head, undelivered, generation.
-- ARGV: time to live, that of the generation, generation, head.
if (redis.call('GET', KEYS[#KEYS]) or '0') ~= ARGV[3] then
  return -1
end
if redis.call('GET', KEYS[10]) == ARGV[4] then
  redis.call('SET', KEYS[11], ARGV[4], 'PX', ARGV[1])
end
return 1
