# Java 17 or 21 for Spark; sourced by setup.sh. The choice is recorded in .venv/java_home, so nobody has to export it.

SYSTEM_JAVAS=/usr/lib/jvm # where packages of the system put theirs

# Print "version home" of a java binary, as it says itself: links and version managers' shims hide the real home.
java_facts() {
  "$1" -XshowSettings:properties -version 2>&1 </dev/null | awk -F' = ' '
    /java.home = / {home = $2} /java.specification.version = / {version = $2} END {if (home) print version, home}'
}

# Spark 4.1 runs on 17 and 21. On 25 it starts, but Arrow cannot initialise and toPandas hangs.
is_supported_java() { [ "$1" = 17 ] || [ "$1" = 21 ]; }

java_candidates() {
  if [ -n "${JAVA_HOME:-}" ]; then echo "$JAVA_HOME/bin/java"; fi
  type -ap java || true
  ls -d "$SYSTEM_JAVAS"/*/bin/java 2>/dev/null || true
}

# Print the home of the first supported Java; name on stderr what was passed over.
find_java() {
  local candidate version home
  while read -r candidate; do
    read -r version home < <(java_facts "$candidate") || continue
    if is_supported_java "$version"; then echo "$home"; return; fi
    say "passing over Java $version in $home: Spark 4.1 needs Java 17 or 21" >&2
  done < <(java_candidates | awk '!seen[$0]++')
  return 1
}

choose_java() {
  local home
  home=$(find_java) || {
    say "no Java 17 or 21 found"
    apt_install_first openjdk-17-jre-headless openjdk-21-jre-headless && home=$(find_java)
  } || fail "Spark needs Java 17 or 21: install one (Debian, Ubuntu: apt-get install openjdk-17-jre-headless)" \
    "or set JAVA_HOME to one, then repeat."
  stamp_is "$VENV/java_home" "$home" && return
  say "using the Java in $home"
  echo "$home" >"$VENV/java_home"
}
