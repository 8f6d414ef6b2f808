"""`/charts`: a page that shows a live chart as it moves. Nothing is loaded from elsewhere; texts are never markup."""

from serving.page_shell import LivePage

_STYLE = """
.rank { width: 6.5rem; } .count { width: 11rem; } #region { width: 8rem; text-transform: uppercase; }
.up { color: #1e8e3e; } .down { color: var(--bad); }
.bar { position: relative; height: .55rem; background: var(--soft); border-radius: .3rem; overflow: hidden; }
.bar i { position: absolute; inset: 0 auto 0 0; background: var(--maybe); }
.bar i + i { background: var(--sure); }
@media (max-width: 40rem) { .bounds { display: none; } .count { width: 7rem; } }
"""

_SCRIPT = """
let source = null;
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
"""

CHARTS_PAGE = LivePage(path="/charts", style=_STYLE, body=_BODY, script=_SCRIPT)
