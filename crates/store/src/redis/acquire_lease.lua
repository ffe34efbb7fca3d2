-- Acquires or renews the lease on folding, unless another holder has it. Returns whether the holder has it now.
-- Not a plain SET NX: a retry after a lost response would refuse the holder that already has the lease.
-- KEYS: lease. ARGV: holder, duration in milliseconds, whether it is only renewed, which needs a lease (1 or 0).
local holder = redis.call('GET', KEYS[1])
if (holder or ARGV[3] == '1') and holder ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
