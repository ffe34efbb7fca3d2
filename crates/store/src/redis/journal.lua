-- Adds the messages that do not exist yet and appends a waypoint.
-- KEYS: waypoints, messages, turns, ends, head, folds, fold order, pin, log, log head, undelivered, exchanges, generation.
-- ARGV: time to live, that of the generation, generation, number of waypoints to keep,
--       whether there is a waypoint (1 or 0), the waypoint, then id and record of each message.
-- Returns -1 if the conversation was deleted since.
if (redis.call('GET', KEYS[#KEYS]) or '0') ~= ARGV[3] then
  return -1
end
for i = 7, #ARGV, 2 do
  redis.call('HSETNX', KEYS[2], ARGV[i], ARGV[i + 1])
end
if ARGV[5] == '1' then
  redis.call('RPUSH', KEYS[1], ARGV[6])
  redis.call('LTRIM', KEYS[1], -tonumber(ARGV[4]), -1)
end
for i = 1, #KEYS - 1 do
  redis.call('PEXPIRE', KEYS[i], ARGV[1])
end
redis.call('PEXPIRE', KEYS[#KEYS], ARGV[2])
return 1
