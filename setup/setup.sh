#!/usr/bin/env bash
# Make everything that lakeboard needs, or see that it is there. Runs any number of times; an interrupted run is
# continued by the next one. `setup.sh accelerator` adds the jar of the optional accelerator profile, `setup.sh browser`
# the browser in which tests look at the live pages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. setup/common.sh
. setup/python.sh
. setup/java.sh
. setup/jars.sh
. setup/server.sh
. setup/browser.sh

# One set-up at a time in this folder; a second one waits. Not every system has flock.
exec 9>.setup.lock
if command -v flock >/dev/null; then flock 9; fi

make_environment
install_packages
install_project
choose_java
provide_jars jars "$JARS"
choose_server
if [ "${1:-}" = accelerator ]; then provide_jars accelerator "$JARS/accelerator"; fi
if [ "${1:-}" = browser ]; then choose_browser; fi
say "ready"
