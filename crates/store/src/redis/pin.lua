-- Replaces the pinned record, or removes it.
-- KEYS: waypoints, messages, turns, ends, head, folds, fold order, pin.
-- ARGV: time to live, whether there is a record (1 or 0), the record.
if ARGV[2] == '1' then
  redis.call('SET', KEYS[8], ARGV[3])
else
  redis.call('DEL', KEYS[8])
end
for i = 1, #KEYS do
  redis.call('PEXPIRE', KEYS[i], ARGV[1])
end
return 1
