-- Acquires or renews the lease on a turn, and extends the life of the conversation.
-- KEYS: waypoints, messages, turns, ends, head, folds, fold order, pin, log, log head, undelivered, exchanges, generation, lease.
-- ARGV: time to live, that of the generation, holder, duration in milliseconds, whether it is only renewed, which needs a lease
--       (1 or 0): who deletes a conversation takes it from the turn that runs.
local lease = KEYS[#KEYS]
local holder = redis.call('GET', lease)
if (holder or ARGV[5] == '1') and holder ~= ARGV[3] then
  return 0
end
redis.call('SET', lease, ARGV[3], 'PX', ARGV[4])
for i = 1, #KEYS - 2 do
  redis.call('PEXPIRE', KEYS[i], ARGV[1])
end
redis.call('PEXPIRE', KEYS[#KEYS - 1], ARGV[2])
return 1
