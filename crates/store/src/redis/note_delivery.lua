-- Notes whether the client has the answer of the last turn, if the head is still this one.
-- Returns -1 if the conversation was deleted since.
-- KEYS: waypoints, messages, turns, ends, head, folds, fold order, pin, log, log head, undelivered, exchanges, generation.
-- ARGV: time to live, that of the generation, generation, head, whether the answer is undelivered (1 or 0).
if (redis.call('GET', KEYS[#KEYS]) or '0') ~= ARGV[3] then
  return -1
end
if redis.call('GET', KEYS[10]) == ARGV[4] then
  if ARGV[5] == '1' then
    redis.call('SET', KEYS[11], ARGV[4], 'PX', ARGV[1])
  else
    redis.call('DEL', KEYS[11])
  end
end
return 1
