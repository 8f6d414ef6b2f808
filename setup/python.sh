# Python 3.11, the virtual environment, the locked packages and this project; sourced by setup.sh.

is_python_311() { "$1" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' >/dev/null 2>&1; }

# Print the first Python 3.11 on PATH. Each is run, since a version manager's shim may stand for nothing.
find_python() {
  local candidate
  while read -r candidate; do
    if is_python_311 "$candidate"; then echo "$candidate"; return; fi
  done < <(type -ap python3.11 python3 python || true)
  return 1
}

can_make_environments() { "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; }

require_venv_module() {
  can_make_environments "$1" && return
  apt_install_first python3.11-venv && can_make_environments "$1" && return
  fail "$1 has no venv module: install it (Debian, Ubuntu: apt-get install python3.11-venv), then repeat."
}

# The environment is made anew when it was left half made or when the folder was moved: its scripts name its place.
make_environment() {
  stamp_is "$VENV/.made-in" "$PWD" && is_python_311 "$PY" && return
  local python
  python=$(find_python) || fail "no Python 3.11 on PATH: install python3.11 (Debian, Ubuntu: apt-get install" \
    "python3.11 python3.11-venv), then repeat."
  require_venv_module "$python"
  say "making the virtual environment $VENV with $("$python" --version) ($python)"
  rm -rf "$VENV"
  "$python" -m venv "$VENV"
  echo "$PWD" >"$VENV/.made-in"
}

# Print the lock's entry of one package, hashes included.
locked_entry() { awk -v name="$1==" 'index($0, name) == 1 {on = 1; print; next} /^[^ ]/ {on = 0} on' requirements.lock; }

pip_install() { "$PY" -m pip install --quiet "$@" || fail "packages could not be installed (see above): mend that" \
  "(often the network or the disk), then repeat; what is already there is kept."; }

# Print what is installed but no longer locked, one name a line; pip and this project are not in the lock.
unlocked_packages() {
  comm -13 <(sed -nE 's/^([a-z0-9-]+)==.*/\1/p' requirements.lock | sort) \
    <("$PY" -m pip list --format=freeze | sed 's/==.*//' | tr 'A-Z_.' 'a-z--' | grep -vxE 'pip|lakeboard' | sort)
}

# Setuptools first, by its hash: it builds pyspark's source archive, and pip would otherwise fetch one unchecked.
install_packages() {
  local wanted
  wanted=$(digest_of <requirements.lock)
  stamp_is "$VENV/.packages" "$wanted" && return
  say "installing $(grep -c '^[a-z]' requirements.lock) locked packages, hashes checked (1-3 minutes; pyspark alone is 450 MB)"
  rm -f "$VENV/.packages" "$VENV/.project"
  locked_entry setuptools >"$VENV/setuptools.lock"
  pip_install --require-hashes --no-deps -r "$VENV/setuptools.lock"
  pip_install --require-hashes --no-build-isolation --use-pep517 -r requirements.lock
  unlocked_packages | xargs --no-run-if-empty "$PY" -m pip uninstall --quiet --yes
  echo "$wanted" >"$VENV/.packages"
}

# Installed again when pyproject.toml or the set of rooms changes, not when code does: it is an editable install.
install_project() {
  local wanted
  wanted=$({ cat pyproject.toml; ls -d -- */__init__.py || true; } | digest_of)
  stamp_is "$VENV/.project" "$wanted" && [ -x "$VENV/bin/lakeboard" ] && return
  say "installing lakeboard itself into $VENV"
  pip_install --no-deps --no-build-isolation --editable .
  echo "$wanted" >"$VENV/.project"
}
