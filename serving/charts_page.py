"""`/charts`: a page that shows a live chart as it moves. Nothing is loaded from elsewhere; texts are never markup."""

import hashlib
from base64 import b64encode

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --sure: #2a7de1; --maybe: #2a7de155; --bad: #c0392b; }
* { box-sizing: border-box; }
body { font: 16px/1.45 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.4rem; margin: 0 0 1rem; } a { color: inherit; }
form { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; margin: 0 0 1rem; }
fieldset { border: 1px solid var(--line); border-radius: .4rem; padding: 0; margin: 0; display: flex; }
fieldset label { padding: .3rem .9rem; cursor: pointer; }
fieldset input { position: absolute; opacity: 0; }
fieldset label:has(:checked) { background: var(--sure); color: white; }
fieldset label:has(:focus-visible) { outline: 2px solid; outline-offset: -3px; }
#region { font: inherit; width: 8rem; padding: .25rem .5rem; text-transform: uppercase; }
table { border-collapse: collapse; width: 100%; table-layout: fixed; }
th { text-align: left; font-weight: 600; } th, td { padding: .4rem .5rem; border-bottom: 1px solid var(--line); }
td { font-variant-numeric: tabular-nums; } .n { text-align: right; } .rank { width: 6.5rem; } .count { width: 11rem; }
.item { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.range, .plain { color: #888; font-size: .85em; } .up { color: #1e8e3e; } .down { color: var(--bad); }
.bar { position: relative; height: .55rem; background: var(--soft); border-radius: .3rem; overflow: hidden; }
.bar i { position: absolute; inset: 0 auto 0 0; background: var(--maybe); }
.bar i + i { background: var(--sure); }
#state { min-height: 1.5em; } #state.bad { color: var(--bad); } #facts { color: #888; }
@media (max-width: 40rem) { .bounds { display: none; } .count { width: 7rem; } }
"""

_SCRIPT = """
"use strict";
const by = id => document.getElementById(id), number = new Intl.NumberFormat("en");
let source = null;
function cell(row, name, text) {
  const made = document.createElement("td");
  made.className = name;
  made.textContent = text;
  row.append(made);
  return made;
}
function small(parent, name, text) {
  const made = document.createElement("span");
  made.className = name;
  made.textContent = text;
  parent.append(" ", made);
}
function shown(entry, most) {
  const row = document.createElement("tr"), rank = cell(row, "rank", entry.rank);
  if (entry.moved > 0) small(rank, "up", "\\u25b2" + entry.moved);
  if (entry.moved < 0) small(rank, "down", "\\u25bc" + -entry.moved);
  if (entry.rank_min !== entry.rank_max) small(rank, "range", entry.rank_min + "\\u2013" + entry.rank_max);
  cell(row, "item", entry.item_id).title = entry.item_id;
  const count = cell(row, "count n", number.format(entry.lower));
  if (entry.upper > entry.lower) small(count, "range", "\\u2013 " + number.format(entry.upper));
  const bar = document.createElement("div");
  bar.className = "bar";
  for (const value of [entry.upper, entry.lower]) {
    const part = document.createElement("i");
    part.style.width = (most ? 100 * value / most : 0) + "%";
    bar.append(part);
  }
  cell(row, "bounds", "").append(bar);
  return row;
}
function time(text) { return text.replace("T", " ").replace(/(\\.\\d{3})\\d*/, "$1").replace("Z", " UTC"); }
function draw(chart) {
  const most = Math.max(0, ...chart.entries.map(entry => entry.upper));
  by("rows").replaceChildren(...chart.entries.map(entry => shown(entry, most)));
  const partial = (chart.partial || []).map(one => "partition " + one.partition + " " + one.reason.replace("_", " "));
  if (partial.length) say("Not all is in: " + partial.join(", ") + ".", true);
  else say(chart.entries.length ? "" : "No plays in this window.");
  by("facts").textContent = number.format(chart.total) + " plays from " + time(chart.window_start) + " to "
    + time(chart.window_end) + ", read up to " + time(chart.as_of) + ". "
    + (chart.exact ? "Exact." : "Counts lie between the two numbers; no other item has more than "
    + number.format(chart.missed_max) + ".");
}
function say(text, bad) { by("state").textContent = text; by("state").className = bad ? "bad" : ""; }
function watch() {
  const [, window_, region] = /^#(1m|1h|1d)\\/([A-Za-z0-9_*-]{1,32})$/.exec(location.hash) || ["", "1h", "*"];
  document.querySelector('input[value="' + window_ + '"]').checked = true;
  by("region").value = region;
  if (source) source.close();
  say("Opening the chart\\u2026");
  source = new EventSource("/v1/charts/live?" + new URLSearchParams({window: window_, region: region, n: 10}));
  source.addEventListener("chart", event => draw(JSON.parse(event.data)));
  source.addEventListener("error", event => {
    say("The live chart is interrupted; trying again\\u2026", true);
    if (event.target.readyState === EventSource.CLOSED) setTimeout(() => event.target === source && watch(), 3000);
  });
}
function choose(event) {
  event.preventDefault();
  const region = by("region").value.trim().toUpperCase() || "*";
  if (!/^([A-Z0-9_-]{1,32}|\\*)$/.test(region)) return say("A region is 1 to 32 letters, digits, _ or -.", true);
  location.hash = document.querySelector("input[name=window]:checked").value + "/" + region;
}
by("chooser").addEventListener("submit", choose);
by("chooser").addEventListener("change", choose);
addEventListener("hashchange", watch);
watch();
"""

_BODY = """
<h1>lakeboard <span class=plain>live charts</span></h1>
<form id=chooser>
<fieldset><label><input type=radio name=window value=1m> minute</label><label><input type=radio name=window value=1h
checked> hour</label><label><input type=radio name=window value=1d> day</label></fieldset>
<label>region <input id=region value="*" maxlength=32 autocomplete=off spellcheck=false></label>
<span class=plain>* is everywhere, ZZ unknown</span>
</form>
<table><thead><tr><th class=rank>rank</th><th>item</th><th class="count n">plays</th><th class=bounds></th></tr></thead>
<tbody id=rows></tbody></table>
<p id=state role=status></p>
<p id=facts></p>
<noscript><p>This page needs JavaScript; <a href="/v1/charts/top?n=10">the chart as JSON</a> does not.</p></noscript>
<p class=plain><a href="/docs">API</a></p>
"""


def charts_page() -> bytes:
    """Return the page."""
    head = "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
    title = f"<title>lakeboard charts</title><style>{_STYLE}</style>"
    return f"{head}{title}<body>{_BODY}<script>{_SCRIPT}</script></body></html>".encode()


def content_security_policy() -> str:
    """Return the policy under which the page runs: its own script, by its hash, and this server's events alone."""
    digest = b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; connect-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )
