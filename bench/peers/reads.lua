-- Reads for wrk: `wrk ... -s reads.lua URL -- KEY`. The same answer again and again; only its head is looked at.

dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "result.lua")

function init(args)
  wrk.headers["Authorization"] = "Bearer " .. args[1]
end
