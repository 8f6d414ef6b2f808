"""Scripts of boards. They move what was decided and look for what is asked; they decide nothing themselves.

No `<` between strings, whose order follows the server's locale, and no arithmetic on scores, which have more bits than
Lua's numbers: sorted sets compare bytes, and positions stay below 2^53.
"""

from typing import Final

# Of a board of a generation, `shard` being the beginning of its keys: what the pointer says, and the beginning of the
# board's own.
_OPENED: Final = """
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

# The beginning of the keys of the generation that is live; false while none is.
_LIVE: Final = """
local function live_of(key, shard)
  local generation = redis.call('GET', key)
  return generation and shard .. 'g' .. generation .. ':'
end
"""

# How many stand before a member, or before any bytes; nobody stands before none.
_BEFORE: Final = """
local function before(b, m)
  if m == '' then return 0 end
  local n = redis.call('ZLEXCOUNT', b.key .. 'over', '-', '(' .. m)
  if b.pages > 0 then
    local page = redis.call('ZLEXCOUNT', b.key .. 'index', '-', '[' .. m) - 1
    if page >= 0 then n = n + b.page * page + redis.call('ZLEXCOUNT', b.key .. 'p:' .. page, '-', '(' .. m) end
    n = n - redis.call('ZLEXCOUNT', b.key .. 'removed', '-', '(' .. m)
  end
  return n
end
"""

# KEYS: bans, held. ARGV: generation, number of entries, then board, id, hash of each; number of players
# whose bans are asked for, and players; number of matches, then two ledger keys and the field of each.
KNOWN: Final = (
    "#!lua flags=no-writes\n"
    + _OPENED
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
    _OPENED
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

# One board at one moment. KEYS: live. ARGV: shard, board, player (empty = by member), hash, member, how many
# rows above and below it are asked for, and whether its score alone is to be ranked too. A member may be any bytes,
# empty ones stand before all. Rows come in two runs, of overlay and base, which the caller merges by their bytes.
LOOK: Final = (
    "#!lua flags=no-writes\n"
    + _OPENED
    + _LIVE
    + _BEFORE
    + """
local shard = live_of(KEYS[1], ARGV[1])
local state = shard and redis.call('HMGET', shard .. 'state', 'ready', 'as_of_ms')
if not state or not state[1] then return {0} end
local b = opened(shard, ARGV[2])
if not b then return {1, state[2]} end
local entry, member = false, ARGV[5]
if ARGV[3] ~= '' then
  entry = entry_of(b, ARGV[3], tonumber(ARGV[4]))
  if entry then member = string.sub(entry, 1, 16) .. ARGV[3] end
end
local over, index, removed = b.key .. 'over', b.key .. 'index', b.key .. 'removed'
local function page_of(m)
  return redis.call('ZLEXCOUNT', index, '-', '[' .. m) - 1
end
local function base_run(page, place, step, wanted)
  local found = {}
  while #found < wanted and page >= 0 and page < b.pages do
    local from, to = place, place + wanted - 1
    if step < 0 then from, to = math.max(0, place - wanted + 1), place end
    local some = (from > to or to < 0) and {} or redis.call('ZRANGE', b.key .. 'p:' .. page, from, to)
    for n = 1, #some do
      local m = step > 0 and some[n] or some[#some + 1 - n]
      if #found < wanted and not redis.call('ZSCORE', removed, m) then found[#found + 1] = m end
    end
    if step > 0 then
      place = to + 1
      if #some < to - from + 1 then page, place = page + 1, 0 end
    else
      place = from - 1
      if place < 0 then page, place = page - 1, b.page - 1 end
    end
  end
  return found
end
local up, down = tonumber(ARGV[6]), tonumber(ARGV[7])
local above, above_base, below, below_base = {}, {}, {}, {}
local own_page = b.pages > 0 and member ~= '' and page_of(member) or -1
if up > 0 and member ~= '' then
  above = redis.call('ZREVRANGEBYLEX', over, '(' .. member, '-', 'LIMIT', 0, up)
  if own_page >= 0 then
    local page = own_page
    local place = redis.call('ZLEXCOUNT', b.key .. 'p:' .. page, '-', '(' .. member) - 1
    if place < 0 then page, place = page - 1, b.page - 1 end
    above_base = base_run(page, place, -1, up)
  end
end
if down > 0 then
  below = redis.call('ZRANGEBYLEX', over, member == '' and '-' or '(' .. member, '+', 'LIMIT', 0, down)
  if b.pages > 0 then
    local page, place = math.max(own_page, 0), 0
    if own_page >= 0 then place = redis.call('ZLEXCOUNT', b.key .. 'p:' .. page, '-', '[' .. member) end
    below_base = base_run(page, place, 1, down)
  end
end
local size = b.players + redis.call('ZCARD', over)
if b.pages > 0 then size = size - redis.call('ZCARD', removed) end
local better = ARGV[8] == '1' and member ~= '' and before(b, string.sub(member, 1, 8)) or 0
return {2, state[2], b.pointer, entry, size, before(b, member), better, above, above_base, below, below_base}
"""
)

# What became of scores, and where their players stand; nothing while the shard is not whole. KEYS: live. ARGV:
# shard, then of each score: two days of the ledger, field, player, hash, number of boards, boards. Gives of each score
# the row in the ledger, then of each board the entry and how many stand before it.
RESULTS: Final = (
    "#!lua flags=no-writes\n"
    + _OPENED
    + _LIVE
    + _BEFORE
    + """
local shard, at, known, results = live_of(KEYS[1], ARGV[1]), 2, {}, {}
if not shard or not redis.call('HGET', shard .. 'state', 'ready') then return {} end
while ARGV[at] do
  local field, id, hash, boards = ARGV[at + 2], ARGV[at + 3], tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
  local ledger = shard .. 'ledger:'
  local found = {redis.call('HGET', ledger .. ARGV[at], field) or redis.call('HGET', ledger .. ARGV[at + 1], field)}
  at = at + 6
  for _ = 1, boards do
    local board = ARGV[at]
    at = at + 1
    if known[board] == nil then known[board] = opened(shard, board) or false end
    local b = known[board]
    local entry = b and entry_of(b, id, hash)
    found[#found + 1] = entry
    found[#found + 1] = entry and before(b, string.sub(entry, 1, 16) .. id) or 0
  end
  results[#results + 1] = found
end
return results
"""
)

# How many stand before members of boards. KEYS: live. ARGV: shard, then board and member of each.
COUNTS: Final = (
    "#!lua flags=no-writes\n"
    + _OPENED
    + _LIVE
    + _BEFORE
    + """
local counts, shard = {}, live_of(KEYS[1], ARGV[1])
for at = 2, #ARGV, 2 do
  local b = shard and opened(shard, ARGV[at])
  counts[#counts + 1] = b and before(b, ARGV[at + 1]) or 0
end
return counts
"""
)

# Fields of the state of the generation that is live. KEYS: live. ARGV: shard, fields.
STATE: Final = (
    "#!lua flags=no-writes\n"
    + _LIVE
    + """
local shard = live_of(KEYS[1], ARGV[1])
return shard and redis.call('HMGET', shard .. 'state', unpack(ARGV, 2)) or {}
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
