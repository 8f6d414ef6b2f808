-- Ranks for wrk: `wrk ... -s ranks.lua URL -- KEY PLAYERS QUERY`. URL + a player at random + QUERY, each time another one.

dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "result.lua")

function init(args)
  headers = { ["Authorization"] = "Bearer " .. args[1] }
  players, query = tonumber(args[2]), args[3]
end

function request()
  return wrk.format("GET", wrk.path .. string.format("player-%08d", math.random(0, players - 1)) .. query, headers)
end
