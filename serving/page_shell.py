"""The shell of the live pages: one look, one menu, nothing loaded from elsewhere; a page's script runs by its hash."""

import hashlib
from base64 import b64encode
from dataclasses import dataclass

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --sure: #2a7de1; --maybe: #2a7de155; --bad: #c0392b; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff7b6b; } }
* { box-sizing: border-box; }
body { font: 16px/1.45 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.4rem; margin: 0 0 1rem; } a { color: inherit; }
form { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; margin: 0 0 1rem; }
fieldset { border: 1px solid var(--line); border-radius: .4rem; padding: 0; margin: 0; display: flex; }
fieldset label { padding: .3rem .9rem; cursor: pointer; }
fieldset input { position: absolute; opacity: 0; }
fieldset label:has(:checked) { background: var(--sure); color: white; }
fieldset label:has(:focus-visible) { outline: 2px solid; outline-offset: -3px; }
input, select, button { font: inherit; padding: .25rem .5rem; }
table { border-collapse: collapse; width: 100%; table-layout: fixed; }
th { text-align: left; font-weight: 600; } th, td { padding: .4rem .5rem; border-bottom: 1px solid var(--line); }
td { font-variant-numeric: tabular-nums; } .n { text-align: right; }
.item { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.range, .plain { color: #888; font-size: .85em; } .bad { color: var(--bad); }
#state { min-height: 1.5em; } #facts { color: #888; }
"""
_SCRIPT = """
"use strict";
const by = id => document.getElementById(id), number = new Intl.NumberFormat("en");
function cell(row, name, text) {
  const made = document.createElement("td");
  made.className = name;
  made.textContent = text;
  row.append(made);
  return made;
}
function say(text, bad) { by("state").textContent = text; by("state").className = bad ? "bad" : ""; }
"""
_MENU = {"/charts": "live charts", "/race": "the race", "/docs": "API"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePage:
    """One page.

    Attributes:
        path: Where it is served.
        style: CSS of its own.
        body: HTML below the heading, with an element `state` in which the page says how it is.
        script: What its one script does beside what all pages' scripts can.
    """

    path: str
    style: str
    body: str
    script: str

    def html(self) -> bytes:
        """Return the page."""
        name = _MENU[self.path]
        menu = " &middot; ".join(f'<a href="{path}">{text}</a>' for path, text in _MENU.items() if path != self.path)
        return (
            "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
            f"<title>lakeboard: {name}</title><style>{_STYLE}{self.style}</style><body>"
            f"<h1>lakeboard <span class=plain>{name}</span></h1>{self.body}<p class=plain>{menu}</p>"
            f"<script>{_SCRIPT}{self.script}</script></body></html>"
        ).encode()

    def content_security_policy(self) -> str:
        """Return the policy under which the page runs: its own script, by its hash, and this server's events alone."""
        digest = b64encode(hashlib.sha256((_SCRIPT + self.script).encode()).digest()).decode()
        return (
            f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; connect-src 'self'; "
            "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
        )
