-- KEYS: the record. Answer: the time in seconds and microseconds, the stamp, the value, and 1 if the key exists.
local record = redis.call('HMGET', KEYS[1], 's', 'd')
local time = redis.call('TIME')
local exists = 1
if not record[1] and not record[2] then
  exists = redis.call('EXISTS', KEYS[1])
end
return {time[1], time[2], record[1], record[2], exists}
