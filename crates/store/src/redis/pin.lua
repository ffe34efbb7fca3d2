-- Replaces the pinned record, or removes it.
-- KEYS: waypoints, messages, turns, ends, head, folds, fold order, pin, log, log head, undelivered, exchanges, generation.
-- ARGV: time to live, that of the generation, whether there is a record (1 or 0), the record.
if ARGV[3] == '1' then
  redis.call('SET', KEYS[8], ARGV[4])
else
  redis.call('DEL', KEYS[8])
end
for i = 1, #KEYS - 1 do
  redis.call('PEXPIRE', KEYS[i], ARGV[1])
end
redis.call('PEXPIRE', KEYS[#KEYS], ARGV[2])
return 1
