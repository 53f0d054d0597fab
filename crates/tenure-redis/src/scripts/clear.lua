-- Records that the quarantine of a run is over.
-- KEYS: the restart record. ARGV: the run id, the field of the caller's clock, and the reading of its first sighting.
-- Answer: 1, or 0 if that sighting is no longer there: the data of the server was deleted or replaced since.
if redis.call('HGET', KEYS[1], 'run') ~= ARGV[1] or redis.call('HGET', KEYS[1], ARGV[2]) ~= ARGV[3] then
  return 0
end
redis.call('HSET', KEYS[1], 'cleared', ARGV[1])
return 1
