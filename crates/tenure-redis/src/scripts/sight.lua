-- Records the first sighting of a run, and whether the run keeps acknowledged writes over a restart.
-- KEYS: the restart record. ARGV: the run id, the quarantine in milliseconds, 1 if every acknowledged write is on disk,
-- 1 if the server was not a replica before, and a random id for a new record. Then, if later connections can use it: the
-- field of the caller's clock, and its reading.
-- Answer: all fields of the restart record.
local before = {}
local fields = redis.call('HGETALL', KEYS[1])
for at = 1, #fields, 2 do
  before[fields[at]] = fields[at + 1]
end
local run = before['run']
if run ~= ARGV[1] then
  local new = {'run', ARGV[1], 'id', ARGV[5], 'quarantine', before['quarantine'] or ARGV[2]}
  -- The restart has lost nothing if the run before had every write on disk, and this server itself wrote that disk: a
  -- replica has copies of the marks, and may lack later writes. If the run before was not cleared, holders from before
  -- that run may still believe.
  local kept = ARGV[3] == '1' and ARGV[4] == '1' and run and before['durable'] == run
  if kept and before['cleared'] == run then
    new[#new + 1] = 'cleared'
    new[#new + 1] = ARGV[1]
  end
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
redis.call('HSETNX', KEYS[1], 'id', ARGV[5])
if ARGV[6] then
  redis.call('HSETNX', KEYS[1], ARGV[6], ARGV[7])
end
if ARGV[3] == '1' then
  redis.call('HSET', KEYS[1], 'durable', ARGV[1])
else
  redis.call('HDEL', KEYS[1], 'durable')
end
return redis.call('HGETALL', KEYS[1])
