-- Scores for wrk: `wrk ... -s scores.lua URL -- KEY PLAYERS ROWS RUN`. Every match is another one.

dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "result.lua")

function init(args)
  headers = { ["Content-Type"] = "application/json", ["Authorization"] = "Bearer " .. args[1] }
  players, rows, run, sent = tonumber(args[2]), tonumber(args[3]), args[4], 0
end

local function row(place)
  return string.format('{"match_id":"%s-%d-%d","player_id":"player-%08d","score":%d}',
    run, sent, place, math.random(0, players - 1), math.random(0, 2000000))
end

function request()
  sent = sent + 1
  if rows == 1 then return wrk.format("POST", nil, headers, row(1)) end
  local made = {}
  for place = 1, rows do made[place] = row(place) end
  return wrk.format("POST", nil, headers, "[" .. table.concat(made, ",") .. "]")
end
