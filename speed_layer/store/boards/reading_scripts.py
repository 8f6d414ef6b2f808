"""Scripts that look at boards: each answers from one generation at one moment. No string is compared here either."""

from typing import Final

from speed_layer.store.boards.scripts import OPENED

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

# How many players a board has.
_SIZE: Final = """
local function size_of(b)
  local size = b.players + redis.call('ZCARD', b.key .. 'over')
  return b.pages > 0 and size - redis.call('ZCARD', b.key .. 'removed') or size
end
"""

# One board at one moment. KEYS: live. ARGV: shard, board, player (empty = by member), hash, member, how many
# rows above and below it are asked for. A member may be any bytes, empty ones stand before all. Rows
# come in two runs, of overlay and base, which the caller merges by their bytes.
LOOK: Final = (
    "#!lua flags=no-writes\n"
    + OPENED
    + _LIVE
    + _BEFORE
    + _SIZE
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
return {2, state[2], b.pointer, entry, size_of(b), before(b, member), above, above_base, below, below_base}
"""
)

# What became of scores, and where their players stand; nothing while the shard is not whole. KEYS: live. ARGV:
# shard, then of each score: two days of the ledger, field, player, hash, number of boards, boards. Gives of each score
# the row in the ledger, then of each board the entry and how many stand before it.
RESULTS: Final = (
    "#!lua flags=no-writes\n"
    + OPENED
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

# Where players stand on a board, all of one moment; nothing while the shard is not whole. KEYS: live. ARGV: shard,
# board, then player and hash of each.
PLACES: Final = (
    "#!lua flags=no-writes\n"
    + OPENED
    + _LIVE
    + _BEFORE
    + _SIZE
    + """
local shard = live_of(KEYS[1], ARGV[1])
local state = shard and redis.call('HMGET', shard .. 'state', 'ready', 'as_of_ms')
if not state or not state[1] then return {} end
local b = opened(shard, ARGV[2])
if not b then return {state[2], 0, {}, {}} end
local entries, counts = {}, {}
for at = 3, #ARGV, 2 do
  local entry = entry_of(b, ARGV[at], tonumber(ARGV[at + 1]))
  entries[#entries + 1] = entry
  counts[#counts + 1] = entry and before(b, string.sub(entry, 1, 16) .. ARGV[at]) or 0
end
return {state[2], size_of(b), entries, counts}
"""
)

# How many stand before members of boards. KEYS: live. ARGV: shard, then board and member of each.
COUNTS: Final = (
    "#!lua flags=no-writes\n"
    + OPENED
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
