# Chromium for the tests of the live pages; sourced by setup.sh. The choice is recorded in .venv/browser.

find_browser() {
  local candidate
  while read -r candidate; do
    if "$candidate" --version </dev/null 2>/dev/null | grep -q Chrom; then echo "$candidate"; return; fi
  done < <(type -ap chromium chromium-browser google-chrome || true)
  return 1
}

# Nobody needs a browser to run lakeboard, so set-up goes on without one and the tests that need it are skipped.
choose_browser() {
  local browser
  browser=$(find_browser) || { apt_install_first chromium && browser=$(find_browser); } || {
    say "no Chromium found, and none could be installed: the tests of the live pages will be skipped" \
      "(Debian: apt-get install chromium, then repeat)"
    rm -f "$VENV/browser"
    return 0
  }
  stamp_is "$VENV/browser" "$browser" && return
  say "tests look at pages in $browser"
  echo "$browser" >"$VENV/browser"
}
