-- Deletes a conversation and begins another generation. Returns the number of deleted keys.
-- KEYS: waypoints, messages, turns, ends, head, folds, fold order, pin, log, log head, undelivered, generation.
-- ARGV: the time to live of the generation, the generation.
-- The deletion comes first: a full server refuses a script whose first write needs memory.
local deleted = 0
for i = 1, #KEYS - 1 do
  deleted = deleted + redis.call('DEL', KEYS[i])
end
redis.call('SET', KEYS[#KEYS], ARGV[2], 'PX', ARGV[1])
return deleted
