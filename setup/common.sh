# Shared words of the set-up scripts; sourced, never run. Every path is relative to the project's root.

VENV=.venv
JARS=.jars
PY=$VENV/bin/python
[ -n "${HOME:-}" ] || unset HOME             # an empty HOME would make pip put its cache into this folder
unset PYTHONPATH PYTHONHOME                  # another environment's modules must not leak into ours
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

say() { printf 'setup: %s\n' "$*"; }

fail() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}

# Run a command as root if that needs no password; else return 1 without asking.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then sudo -n "$@"
  else return 1
  fi
}

# Install the first of the named Debian or Ubuntu packages that can be had; 1 where that is not possible here.
apt_install_first() {
  command -v apt-get >/dev/null && as_root true || return 1
  local package log
  log=$(as_root apt-get update -qq </dev/null 2>&1) || { echo "$log" >&2; return 1; }
  for package in "$@"; do
    say "installing $package with apt-get"
    log=$(as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" \
      </dev/null 2>&1) && return 0
    echo "$log" | tail -n 5 >&2
  done
  return 1
}

digest_of() { sha256sum | cut -d' ' -f1; }

# Does the stamp file hold exactly this text? Stamps hold content digests: a fresh clone's file times say nothing.
stamp_is() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }
