-- Records that the quarantine of a run is over.
-- KEYS: the restart record. ARGV: the run id, and the id of the restart record that the caller saw when it began to wait.
-- Answer: 1, or 0 if that record is no longer there: the data of the server was deleted or replaced since.
if redis.call('HGET', KEYS[1], 'run') ~= ARGV[1] or redis.call('HGET', KEYS[1], 'id') ~= ARGV[2] then
  return 0
end
redis.call('HSET', KEYS[1], 'cleared', ARGV[1])
return 1
