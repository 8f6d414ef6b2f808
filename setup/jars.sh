# Jars by coordinates, checked by SHA-256 before they count; sourced by setup.sh.
# Each set is setup/jars/NAME.xml (coordinates, read by the Ivy that pyspark ships) and setup/jars/NAME.sha256.

jars_match() { [ -d "$1" ] && (cd "$1" && sha256sum --check --status --strict "$2" 2>/dev/null); }

# Resolve a set into a folder; the log is shown only when it fails.
download_jars() {
  local set_name=$1 folder=$2 log=$JARS/.ivy/$1.log ivy
  ivy=$(ls "$VENV"/lib/python3.11/site-packages/pyspark/jars/ivy-*.jar)
  mkdir -p "$JARS/.ivy"
  "$(cat "$VENV/java_home")/bin/java" -Divy.default.ivy.user.dir="$PWD/$JARS/.ivy" -jar "$ivy" \
    -ivy "setup/jars/$set_name.xml" -types jar bundle \
    -retrieve "$PWD/$folder/[artifact]-[revision].[ext]" >"$log" 2>&1 </dev/null && return
  tail -n 20 "$log" >&2
  fail "the jars of setup/jars/$set_name.xml could not be resolved: check the network, then repeat."
}

# A wrong hash ends it here: neither the jars nor the cache they came from are kept.
refuse_wrong_jars() {
  local sums=$1 incoming=$2
  jars_match "$incoming" "$sums" && return
  (cd "$incoming" && sha256sum --check --quiet "$sums") >&2 || true
  rm -rf "$incoming" "$JARS/.ivy"
  fail "downloaded jars differ from $(basename "$sums") and were refused: repeat; if it happens again, the source" \
    "cannot be trusted, or the list needs the new version's hashes."
}

# Make a folder hold exactly the jars of a set. Files move in whole, from a folder beside it, after the check.
provide_jars() {
  local set_name=$1 folder=$2 incoming=$JARS/.incoming sums=$PWD/setup/jars/$1.sha256
  if jars_match "$folder" "$sums" && [ "$(ls "$folder"/*.jar | wc -l)" -eq "$(wc -l <"$sums")" ]; then return; fi
  say "resolving $(wc -l <"$sums") jars of setup/jars/$set_name.xml"
  rm -rf "$incoming"
  mkdir -p "$incoming" "$folder"
  download_jars "$set_name" "$incoming"
  refuse_wrong_jars "$sums" "$incoming"
  rm -f "$folder"/*.jar
  mv "$incoming"/*.jar "$folder/"
  rm -rf "$incoming" "$JARS/.ivy"
}
