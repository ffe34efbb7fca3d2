-- Releases the lease if it belongs to the holder: a late holder must not release the lease of the next one.
-- KEYS: lease. ARGV: holder.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
return 1
