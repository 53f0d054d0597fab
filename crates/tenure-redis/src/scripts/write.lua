-- KEYS: the record, and the restart record if ARGV[4] is not empty.
-- ARGV: the expected stamp (empty: the record must not exist), the new stamp, the new value, the run id that must be
-- cleared (empty: any), and the channels for hints.
-- Answer: 1 applied, 0 conflict, -1 not cleared; the time in seconds and microseconds.
local time = redis.call('TIME')
if ARGV[4] ~= '' and redis.call('HGET', KEYS[2], 'cleared') ~= ARGV[4] then
  return {-1, time[1], time[2]}
end
if ARGV[1] == '' then
  if redis.call('EXISTS', KEYS[1]) == 1 then
    return {0, time[1], time[2]}
  end
elseif redis.call('HGET', KEYS[1], 's') ~= ARGV[1] then
  return {0, time[1], time[2]}
end
redis.call('HSET', KEYS[1], 's', ARGV[2], 'd', ARGV[3])
for number = 5, #ARGV do
  -- Not redis.call: an error after the write would hide that the write was applied.
  redis.pcall('PUBLISH', ARGV[number], '')
end
return {1, time[1], time[2]}
