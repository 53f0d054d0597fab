-- Records the first sighting of a run, and whether the run keeps acknowledged writes over a restart.
-- KEYS: the restart record. ARGV: the run id, the field of the caller's clock, its reading, the quarantine in
-- milliseconds, 1 if every acknowledged write is on disk, and 1 if the server was not a replica before.
-- Answer: all fields of the restart record.
local run = redis.call('HGET', KEYS[1], 'run')
if run ~= ARGV[1] then
  -- A sighting of another run is worthless.
  local before = redis.call('HMGET', KEYS[1], 'quarantine', 'durable', 'cleared')
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'run', ARGV[1])
  if before[1] then
    redis.call('HSET', KEYS[1], 'quarantine', before[1])
  end
  -- The restart has lost nothing if the run before had every write on disk, and this server itself wrote that disk: a
  -- replica has copies of the marks, and may lack later writes. If the run before was not cleared, holders from before
  -- that run may still believe.
  if ARGV[5] == '1' and ARGV[6] == '1' and run and before[2] == run and before[3] == run then
    redis.call('HSET', KEYS[1], 'cleared', ARGV[1])
  end
end
redis.call('HSETNX', KEYS[1], 'quarantine', ARGV[4])
redis.call('HSETNX', KEYS[1], ARGV[2], ARGV[3])
if ARGV[5] == '1' then
  redis.call('HSET', KEYS[1], 'durable', ARGV[1])
else
  redis.call('HDEL', KEYS[1], 'durable')
end
return redis.call('HGETALL', KEYS[1])
