-- Checks the token of a fenced write, raises the mark, and runs the commands of the writer.
-- KEYS: the mark; the record of the lease if there is the flag 'g'; all keys of the commands.
-- ARGV: the token as LEASE=TOKEN; the least token that the mark must show (0: any); flags; and for each command the number
-- of its words, and the words.
-- Flags: 'l', the token is smaller than the least one; 'g', check the grant in the record, too; 'w', write the mark also if it
-- does not change.
-- Answer: 1 and the replies, or a word and what belongs to it. Only 1 and 'failed' mean that anything was written.
local offered = ARGV[1]
local flags = ARGV[3]
local mark = redis.call('HGET', KEYS[1], 'mark')
-- The same holder writes again: the usual case, without any more checks.
if mark ~= offered or flags ~= '' then
  local name, number = string.match(offered, '^(.*)=(%d+)$')
  local token = tonumber(number)
  local highest = 0
  if mark then
    -- tonumber alone takes '0x7' and '7e3', too.
    local lease, digits = string.match(mark, '^(.*)=([1-9]%d*)$')
    if not lease or #digits > 16 then
      return {'foreign mark'}
    end
    if lease ~= name then
      return {'mark', mark}
    end
    highest = tonumber(digits)
  elseif redis.call('EXISTS', KEYS[1]) == 1 then
    return {'foreign mark'}
  end
  if highest < tonumber(ARGV[2]) then
    return {'went back', string.format('%.0f', highest)}
  end
  if token < highest then
    return {'mark', mark}
  end
  if string.find(flags, 'g', 1, true) then
    local granted = 0
    local data = redis.call('HGET', KEYS[2], 'd')
    if data then
      local is_json, record = pcall(cjson.decode, data)
      -- A record with 'crit' is a plain key, or of a later version.
      if not is_json or type(record) ~= 'table' or record.tenure ~= 1 or record.crit ~= nil
        or type(record.token) ~= 'number' then
        return {'foreign record'}
      end
      -- Before the first grant, a record has no term, and its token is a floor.
      if record.term ~= nil then
        granted = record.token
      end
    elseif redis.call('EXISTS', KEYS[2]) == 1 then
      return {'foreign record'}
    end
    if token ~= granted then
      return {'granted', string.format('%.0f', granted)}
    end
  end
  -- The mark first: a command that fails leaves the fence raised. Errors of the commands are returned and not raised, so a
  -- raised error means that nothing was written.
  if token > highest or string.find(flags, 'w', 1, true) then
    redis.call('HSET', KEYS[1], 'mark', offered)
  end
end
local answer = {1}
local at = 4
local size = #ARGV
while at <= size do
  local last = at + ARGV[at]
  local reply = redis.pcall(unpack(ARGV, at + 1, last))
  if type(reply) == 'table' and reply.err then
    return {'failed', reply.err, answer}
  end
  answer[#answer + 1] = reply
  at = last + 1
end
return answer
