"""The keys of the event log in its server, and the little that its scripts do there.

lb:log            hash: id, format, created_ms, and the number of partitions per stream (plays, scores)
lb:log:plays:0    stream: entries with one field, `b` (docs/log-format.md)
lb:log:trimmed    hash: partition -> last entry dropped
lb:log:readers    hash: reader -> server milliseconds when it stops counting, 0 = never
lb:log:offsets    hash: <reader>|<partition> -> last entry it needs no more
"""

from domain.log import Partition

META = "lb:log"
TRIMMED = "lb:log:trimmed"
READERS = "lb:log:readers"
OFFSETS = "lb:log:offsets"
BODY = b"b"
FORMAT = 1


def stream_key(partition: Partition) -> str:
    """Return the key of a partition's stream."""
    return f"{META}:{partition}"


def offset_field(reader: str, partition: Partition) -> str:
    """Return the field that holds a reader's offset."""
    return f"{reader}|{partition}"


# The scripts say first which log they found and do nothing to another one: what was said about a log that is gone must
# never fall on the one in its place. They write even when memory is full: forgetting is what ends that.

# Forget what no reader needs any more and say so in one step: a crash between the two would leave a hole that
# nobody sees, or a mark above entries that are there.
# KEYS: log, stream, trimmed, readers, offsets; ARGV: log id, partition, now.
# Milliseconds and counters stay far below 2^53, so Lua's numbers compare them exactly.
TRIM = """#!lua flags=allow-oom
local found = redis.call('HGET', KEYS[1], 'id')
if found ~= ARGV[1] then return {found, false} end
local lowest_ms, lowest_seq = nil, nil
local readers = redis.call('HGETALL', KEYS[4])
for i = 1, #readers, 2 do
  local until_ms = tonumber(readers[i + 1])
  if until_ms == 0 or until_ms > tonumber(ARGV[3]) then
    local offset = redis.call('HGET', KEYS[5], readers[i] .. '|' .. ARGV[2]) or '0-0'
    local ms, seq = string.match(offset, '^(%d+)-(%d+)$')
    ms, seq = tonumber(ms), tonumber(seq)
    if lowest_ms == nil or ms < lowest_ms or (ms == lowest_ms and seq < lowest_seq) then
      lowest_ms, lowest_seq = ms, seq
    end
  end
end
local before = redis.call('HGET', KEYS[3], ARGV[2]) or '0-0'
if lowest_ms == nil then return {found, before} end
local ms, seq = string.match(before, '^(%d+)-(%d+)$')
ms, seq = tonumber(ms), tonumber(seq)
if lowest_ms < ms or (lowest_ms == ms and lowest_seq <= seq) then return {found, before} end
local through = string.format('%d-%d', lowest_ms, lowest_seq)
redis.call('XTRIM', KEYS[2], 'MINID', '=', string.format('%d-%d', lowest_ms, lowest_seq + 1))
redis.call('HSET', KEYS[3], ARGV[2], through)
return {found, through}
"""

# A reader's offsets only grow, whatever order its commits arrive in.
# KEYS: log, readers, offsets; ARGV: log id, reader, until, then field, entry, field, entry, ...
COMMIT = """#!lua flags=allow-oom
local found = redis.call('HGET', KEYS[1], 'id')
if found ~= ARGV[1] then return found end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
for i = 4, #ARGV, 2 do
  local before = redis.call('HGET', KEYS[3], ARGV[i]) or '0-0'
  local ms, seq = string.match(before, '^(%d+)-(%d+)$')
  local new_ms, new_seq = string.match(ARGV[i + 1], '^(%d+)-(%d+)$')
  ms, seq, new_ms, new_seq = tonumber(ms), tonumber(seq), tonumber(new_ms), tonumber(new_seq)
  if new_ms > ms or (new_ms == ms and new_seq > seq) then redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1]) end
end
return found
"""

# Whether an entry is there, without sending it. KEYS: stream; ARGV: entry.
IS_THERE = """#!lua flags=no-writes
return #redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1], 'COUNT', 1)
"""

# The last id of each stream, nil for one that is not there. XINFO alone would send the first and last entries too.
# KEYS: log, streams.
ENDS = """#!lua flags=no-writes
local ends = {redis.call('HGET', KEYS[1], 'id')}
for i = 2, #KEYS do
  ends[i] = false
  if redis.call('EXISTS', KEYS[i]) == 1 then
    local info = redis.call('XINFO', 'STREAM', KEYS[i])
    for j = 1, #info, 2 do
      if info[j] == 'last-generated-id' then ends[i] = info[j + 1] end
    end
  end
end
return ends
"""

# Another identity for the same entries, which begins now: what was dropped before is of the old one. So were marks and
# offsets; readers go on holding back the trim.
# Of two that do it at once the first decides. KEYS: log, trimmed, offsets; ARGV: log id, new id.
START_OVER = """#!lua flags=allow-oom
local found = redis.call('HGET', KEYS[1], 'id')
if found ~= ARGV[1] then return found end
local time = redis.call('TIME')
local now_ms = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('HSET', KEYS[1], 'id', ARGV[2], 'created_ms', now_ms)
redis.call('DEL', KEYS[2], KEYS[3])
return ARGV[2]
"""
