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


# Forget what no reader needs any more and say so in one step: a crash between the two would leave a hole that
# nobody sees, or a mark above entries that are there. KEYS: stream, trimmed, readers, offsets; ARGV: partition, now.
# Milliseconds and counters stay far below 2^53, so Lua's numbers compare them exactly.
TRIM = """
local lowest_ms, lowest_seq = nil, nil
local readers = redis.call('HGETALL', KEYS[3])
for i = 1, #readers, 2 do
  local until_ms = tonumber(readers[i + 1])
  if until_ms == 0 or until_ms > tonumber(ARGV[2]) then
    local offset = redis.call('HGET', KEYS[4], readers[i] .. '|' .. ARGV[1]) or '0-0'
    local ms, seq = string.match(offset, '^(%d+)-(%d+)$')
    ms, seq = tonumber(ms), tonumber(seq)
    if lowest_ms == nil or ms < lowest_ms or (ms == lowest_ms and seq < lowest_seq) then
      lowest_ms, lowest_seq = ms, seq
    end
  end
end
local before = redis.call('HGET', KEYS[2], ARGV[1]) or '0-0'
if lowest_ms == nil then return before end
local ms, seq = string.match(before, '^(%d+)-(%d+)$')
if lowest_ms < tonumber(ms) or (lowest_ms == tonumber(ms) and lowest_seq <= tonumber(seq)) then return before end
local through = string.format('%d-%d', lowest_ms, lowest_seq)
redis.call('XTRIM', KEYS[1], 'MINID', '=', string.format('%d-%d', lowest_ms, lowest_seq + 1))
redis.call('HSET', KEYS[2], ARGV[1], through)
return through
"""

# A reader's offsets only grow, whatever order its commits arrive in. KEYS: readers, offsets; ARGV: reader, until,
# then field, entry, field, entry, ...
COMMIT = """
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
for i = 3, #ARGV, 2 do
  local before = redis.call('HGET', KEYS[2], ARGV[i]) or '0-0'
  local ms, seq = string.match(before, '^(%d+)-(%d+)$')
  local new_ms, new_seq = string.match(ARGV[i + 1], '^(%d+)-(%d+)$')
  ms, seq, new_ms, new_seq = tonumber(ms), tonumber(seq), tonumber(new_ms), tonumber(new_seq)
  if new_ms > ms or (new_ms == ms and new_seq > seq) then redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1]) end
end
"""
