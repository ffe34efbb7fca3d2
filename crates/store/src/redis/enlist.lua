-- Adds a conversation to the index and removes expired ones.
-- KEYS: index. ARGV: time to live, conversation, milliseconds since the epoch, the latest expired time.
redis.call('ZADD', KEYS[1], 'GT', ARGV[3], ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
