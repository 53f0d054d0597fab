-- Records the first sighting of a run, and whether the run keeps acknowledged writes over a restart.
-- KEYS: the restart record. ARGV: the run id, the field of the caller's clock, its reading, the quarantine in
-- milliseconds, and 1 if every acknowledged write is on disk.
-- Answer: all fields of the restart record.
local run = redis.call('HGET', KEYS[1], 'run')
if run ~= ARGV[1] then
  -- A sighting of another run is worthless.
  local before = redis.call('HMGET', KEYS[1], 'quarantine', 'durable')
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'run', ARGV[1])
  if before[1] then
    redis.call('HSET', KEYS[1], 'quarantine', before[1])
  end
  if ARGV[5] == '1' and run and before[2] == run then
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
