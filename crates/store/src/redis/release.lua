-- Gives the right to fold back, if it is the holder who asks: a late one must not take it from the next.
-- KEYS: claim. ARGV: holder.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
return 1
