-- Stores what was recalled after a message. The last write wins.
-- KEYS: waypoints, messages, turns, ends, head, folds, fold order, pin, log, log head, undelivered, exchanges, generation.
-- ARGV: time to live, that of the generation, generation, the message, the record.
-- Returns -1 if the conversation was deleted since.
if (redis.call('GET', KEYS[#KEYS]) or '0') ~= ARGV[3] then
  return -1
end
redis.call('HSET', KEYS[12], ARGV[4], ARGV[5])
for i = 1, #KEYS - 1 do
  redis.call('PEXPIRE', KEYS[i], ARGV[1])
end
redis.call('PEXPIRE', KEYS[#KEYS], ARGV[2])
return 1
