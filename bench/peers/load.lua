-- Load for wrk: `wrk ... -s load.lua URL -- RUN ROWS KEY`. Every event has an id of its own.
-- Bodies of many rows are made once and get a new prefix for their ids in each request, which costs little.

dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "result.lua")

local threads = 0

function setup(thread)
  threads = threads + 1
  thread:set("number", threads)
end

local function row(id, item)
  return string.format(
    '{"event_id":"%s","item_id":"Song %06d","region":"IN","user_id":"listener-%06d",' ..
    '"event_time":"2026-03-02T12:34:56.789Z","duration_ms":%d}',
    id, item, item * 7 % 200000, 1000 + item * 13 % 400000)
end

local function item()
  return math.floor(20000 ^ math.random()) - 1  -- Zipf's law with exponent 1
end

function init(args)
  run, rows = args[1], tonumber(args[2])
  headers = { ["Content-Type"] = "application/json", ["Authorization"] = "Bearer " .. args[3] }
  math.randomseed(number)
  sent = 0
  if rows > 1 then
    local made = {}
    for place = 1, rows do made[place] = row("@-" .. place, item()) end
    template = "[" .. table.concat(made, ",") .. "]"
  end
end

function request()
  sent = sent + 1
  local prefix = run .. "-" .. number .. "-" .. sent
  local body = rows > 1 and string.gsub(template, "@", prefix) or row(prefix, item())
  return wrk.format("POST", nil, headers, body)
end
