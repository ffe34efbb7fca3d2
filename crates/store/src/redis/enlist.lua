-- Puts a conversation into the index, and drops those from it whose time is over.
-- KEYS: index. ARGV: time to live, conversation, milliseconds since 1970, the latest time that is over.
redis.call('ZADD', KEYS[1], 'GT', ARGV[3], ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
