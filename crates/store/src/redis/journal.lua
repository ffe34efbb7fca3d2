-- Adds the messages that do not exist yet and appends a waypoint.
-- KEYS: waypoints, messages, turns, ends, head, folds, fold order, pin.
-- ARGV: time to live, number of waypoints to keep, whether there is a waypoint (1 or 0), the waypoint,
--       then id and record of each message.
for i = 5, #ARGV, 2 do
  redis.call('HSETNX', KEYS[2], ARGV[i], ARGV[i + 1])
end
if ARGV[3] == '1' then
  redis.call('RPUSH', KEYS[1], ARGV[4])
  redis.call('LTRIM', KEYS[1], -tonumber(ARGV[2]), -1)
end
for i = 1, #KEYS do
  redis.call('PEXPIRE', KEYS[i], ARGV[1])
end
return 1
