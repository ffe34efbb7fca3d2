-- Deletes a conversation and begins another generation. Returns the number of deleted keys.
-- KEYS: waypoints, messages, turns, ends, head, folds, fold order, pin, log, log head, undelivered, exchanges, generation.
-- ARGV: the time to live of the generation, the generation.
-- A deletion whose reply was lost is sent again. It has happened, and what was written since belongs to the new generation.
if redis.call('GET', KEYS[#KEYS]) == ARGV[2] then
  return 1
end
-- The deletion comes first: a full server refuses a script whose first write needs memory.
local deleted = 0
for i = 1, #KEYS - 1 do
  deleted = deleted + redis.call('DEL', KEYS[i])
end
redis.call('SET', KEYS[#KEYS], ARGV[2], 'PX', ARGV[1])
return deleted
