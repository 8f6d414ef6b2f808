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

# Print the jars of a folder that are absent or not what the list says, in one line; nothing when all are right.
wrong_jars() {
  (cd "$1" && LC_ALL=C sha256sum --check --quiet "$2" 2>/dev/null || true) | sed 's/: FAILED.*//' | paste -sd' '
}

# A wrong hash ends it here: neither the jars nor the cache they came from are kept.
refuse_wrong_jars() {
  local sums=$1 incoming=$2 wrong
  jars_match "$incoming" "$sums" && return
  wrong=$(wrong_jars "$incoming" "$sums")
  rm -rf "$incoming" "$JARS/.ivy"
  fail "refused $wrong: absent, or not of the SHA-256 in setup/jars/$(basename "$sums"). Repeat; if it happens" \
    "again, the source cannot be trusted, or the list needs the new version's hashes."
}

# A wrong jar in place goes at once: should the download fail, nothing may start with it.
remove_wrong_jars() {
  local folder=$1 sums=$2 jar
  for jar in $(wrong_jars "$folder" "$sums"); do
    [ -e "$folder/$jar" ] || continue
    say "$folder/$jar is not what setup/jars/$(basename "$sums") says (SHA-256) and was removed"
    rm -f "$folder/$jar"
  done
}

# Make a folder hold exactly the jars of a set. Files move in whole, from a folder beside it, after the check.
provide_jars() {
  local set_name=$1 folder=$2 incoming=$JARS/.incoming sums=$PWD/setup/jars/$1.sha256
  if jars_match "$folder" "$sums" && [ "$(ls "$folder"/*.jar | wc -l)" -eq "$(wc -l <"$sums")" ]; then return; fi
  rm -rf "$incoming"
  mkdir -p "$incoming" "$folder"
  remove_wrong_jars "$folder" "$sums"
  say "resolving $(wc -l <"$sums") jars of setup/jars/$set_name.xml"
  download_jars "$set_name" "$incoming"
  refuse_wrong_jars "$sums" "$incoming"
  rm -f "$folder"/*.jar
  (cd "$incoming" && mv $(cut -c67- "$sums") "$OLDPWD/$folder/") # what the list does not name was not checked
  rm -rf "$incoming" "$JARS/.ivy"
}
