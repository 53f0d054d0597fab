-- Reads the record, and writes it again unchanged: a WAIT after that covers every earlier write of the record, also one
-- that was sent on another connection.
-- KEYS: the record. Answer: the time in seconds and microseconds, the stamp, the value, and 1 if the key exists.
local record = redis.call('HMGET', KEYS[1], 's', 'd')
local time = redis.call('TIME')
local exists = redis.call('EXISTS', KEYS[1])
if record[1] then
  redis.call('HSET', KEYS[1], 's', record[1])
end
return {time[1], time[2], record[1], record[2], exists}
