"""Scripts of boards. They move what was decided and look for what is asked; they decide nothing themselves.

No `<` between strings, whose order follows the server's locale, and no arithmetic on scores, which have more bits than
Lua's numbers: sorted sets compare bytes, and positions stay below 2^53.
"""

from typing import Final

# Of a board of a generation, `shard` being the beginning of its keys: what the pointer says, and the beginning of the
# board's own.
OPENED: Final = """
local function opened(shard, board)
  local pointer = redis.call('HGET', shard .. 'boards', board)
  if not pointer then return nil end
  local version, over, base, pages, page, players = string.match(pointer, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  return {
    pointer = pointer, key = shard .. board .. ':' .. version .. ':', over_buckets = tonumber(over),
    base_buckets = tonumber(base), pages = tonumber(pages), page = tonumber(page), players = tonumber(players),
  }
end
local function entry_of(b, id, hash)
  local entry = redis.call('HGET', b.key .. 'o:' .. hash % b.over_buckets, id)
  if entry == '' then return false end
  if not entry and b.base_buckets > 0 then
    entry = redis.call('HGET', b.key .. 'm:' .. hash % b.base_buckets, id)
  end
  return entry
end
"""

# KEYS: bans, held. ARGV: generation, number of entries, then board, id, hash of each; number of players
# whose bans are asked for, and players; number of matches, then two ledger keys and the field of each.
KNOWN: Final = (
    "#!lua flags=no-writes\n"
    + OPENED
    + """
local shard, at = ARGV[1], 3
local entries, shadows, bans, rows, held = {}, {}, {}, {}, {}
local known = {}
for n = 1, tonumber(ARGV[2]) do
  local board, id, hash = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  at = at + 3
  if known[board] == nil then known[board] = opened(shard, board) or false end
  entries[n] = known[board] and entry_of(known[board], id, hash)
  shadows[n] = redis.call('HGET', shard .. 'shadow:' .. board, id)
end
local players = tonumber(ARGV[at])
at = at + 1
for n = 1, players do
  bans[n] = redis.call('HGET', KEYS[1], ARGV[at])
  at = at + 1
end
local matches = tonumber(ARGV[at])
at = at + 1
for n = 1, matches do
  rows[n] = redis.call('HGET', ARGV[at], ARGV[at + 2]) or redis.call('HGET', ARGV[at + 1], ARGV[at + 2])
  held[n] = redis.call('HGET', KEYS[2], ARGV[at + 2])
  at = at + 3
end
return {entries, shadows, bans, rows, held}
"""
)

# All or nothing: what was expected is looked at before anything is moved. KEYS: state, boards. ARGV: generation, log
# id, field of the partition, position expected, position wanted, log time; number of boards, pointer of a new one, then
# name and pointer expected of each; number of moves, then board, id, hash, new entry (empty = none) of each; number of
# fields, then key, field, value (empty = delete) of each.
APPLY: Final = (
    OPENED
    + """
local shard, at = ARGV[1], 9
if redis.call('HGET', KEYS[1], 'log') ~= ARGV[2] then return 'log' end
if (redis.call('HGET', KEYS[1], ARGV[3]) or '') ~= ARGV[4] then return 'position' end
local known = {}
for _ = 1, tonumber(ARGV[7]) do
  local board = ARGV[at]
  known[board] = opened(shard, board) or false
  if (known[board] and known[board].pointer or '') ~= ARGV[at + 1] then return 'version' end
  at = at + 2
end
for board, there in pairs(known) do
  if not there then
    redis.call('HSET', KEYS[2], board, ARGV[8])
    known[board] = opened(shard, board)
  end
end
local moves = tonumber(ARGV[at])
at = at + 1
for _ = 1, moves do
  local b, id, hash, new = known[ARGV[at]], ARGV[at + 1], tonumber(ARGV[at + 2]), ARGV[at + 3]
  at = at + 4
  local map = b.key .. 'o:' .. hash % b.over_buckets
  local old = redis.call('HGET', map, id)
  local base = b.base_buckets > 0 and redis.call('HGET', b.key .. 'm:' .. hash % b.base_buckets, id)
  if old and old ~= '' then
    redis.call('ZREM', b.key .. 'over', string.sub(old, 1, 16) .. id)
  elseif base and not old then
    redis.call('ZADD', b.key .. 'removed', 0, string.sub(base, 1, 16) .. id)
  end
  if base and new == base then
    redis.call('ZREM', b.key .. 'removed', string.sub(base, 1, 16) .. id)
    redis.call('HDEL', map, id)
  elseif new == '' and not base then
    redis.call('HDEL', map, id)
  else
    redis.call('HSET', map, id, new)
    if new ~= '' then redis.call('ZADD', b.key .. 'over', 0, string.sub(new, 1, 16) .. id) end
  end
end
local fields = tonumber(ARGV[at])
at = at + 1
for _ = 1, fields do
  if ARGV[at + 2] == '' then
    redis.call('HDEL', ARGV[at], ARGV[at + 1])
  else
    redis.call('HSET', ARGV[at], ARGV[at + 1], ARGV[at + 2])
  end
  at = at + 3
end
if ARGV[5] ~= '' then redis.call('HSET', KEYS[1], ARGV[3], ARGV[5]) end
redis.call('HSET', KEYS[1], 'as_of_ms', ARGV[6])
return 'applied'
"""
)

# Make another generation the live one, if it is no less far in any partition. A position begins with the version of an
# entry, beyond 2^53 and so compared in two halves of digits, and with how many of its events. KEYS: live, next, both
# states. ARGV: both generations, then the fields of partitions.
SWAP: Final = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'live' end
if redis.call('GET', KEYS[2]) ~= ARGV[2] then return 'next' end
if redis.call('HGET', KEYS[3], 'log') ~= redis.call('HGET', KEYS[4], 'log') then return 'log' end
local function position(key, field)
  local entry, events = string.match(redis.call('HGET', key, field) or '', '^(%d+) (%d+)')
  if not entry then return {-1, -1, -1} end
  return {tonumber(string.sub(entry, 1, -10)) or 0, tonumber(string.sub(entry, -9)), tonumber(events)}
end
for n = 3, #ARGV do
  local old, new = position(KEYS[3], ARGV[n]), position(KEYS[4], ARGV[n])
  for part = 1, 3 do
    if new[part] < old[part] then return 'behind' end
    if new[part] > old[part] then break end
  end
end
redis.call('SET', KEYS[1], ARGV[2])
redis.call('DEL', KEYS[2])
return 'swapped'
"""
