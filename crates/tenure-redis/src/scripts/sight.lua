-- Records the first sighting of a run.
-- KEYS: the restart record. ARGV: the run id, the quarantine in milliseconds, and a random id for a new record. Then, if later
-- connections can use it: the field of the caller's clock, and its reading.
-- Answer: all fields of the restart record.
local before = {}
local fields = redis.call('HGETALL', KEYS[1])
for at = 1, #fields, 2 do
  before[fields[at]] = fields[at + 1]
end
if before['run'] ~= ARGV[1] then
  local new = {'run', ARGV[1], 'id', ARGV[3], 'quarantine', before['quarantine'] or ARGV[2]}
  -- First this one command, which replaces what it must: a user may lack a permission, or the memory may be full.
  redis.call('HSET', KEYS[1], unpack(new))
  -- A sighting of another run is worthless.
  for at = 1, #new, 2 do
    before[new[at]] = nil
  end
  for at = 1, #fields, 2 do
    if before[fields[at]] then
      redis.call('HDEL', KEYS[1], fields[at])
    end
  end
end
redis.call('HSETNX', KEYS[1], 'quarantine', ARGV[2])
redis.call('HSETNX', KEYS[1], 'id', ARGV[3])
if ARGV[4] then
  redis.call('HSETNX', KEYS[1], ARGV[4], ARGV[5])
end
return redis.call('HGETALL', KEYS[1])
