"""`/race`: a page that shows exact counts and a sketch of the same plays, side by side as they come."""

from domain.race import DEFAULT_SEED, DEFAULT_WIDTH, MOST_SEED, PLAYS, SONGS, WIDTHS
from serving.page_shell import LivePage

_STYLE = """
.rank { width: 3rem; } .plays { width: 5.5rem; } .mark { width: 2rem; }
td.wrong { color: var(--bad); font-weight: 600; } td.gap, th.gap { border-left: 1px solid var(--line); }
#seed { width: 8rem; } progress { width: 100%; height: .5rem; accent-color: var(--sure); }
.sizes { display: grid; grid-template-columns: max-content 1fr max-content; gap: .3rem .8rem; align-items: center; }
.sizes div { height: .55rem; border-radius: .3rem; background: var(--sure); min-width: 2px; }
@media (max-width: 40rem) {
  table { font-size: .85rem; } th, td { padding: .35rem .2rem; }
  .plays { width: 3.4rem; } .rank { width: 1.6rem; } .mark { width: 1.1rem; }
}
"""

_SCRIPT = """
let source = null;
function shown(row) {
  const made = document.createElement("tr"), wrong = row.wrong ? " wrong" : "";
  cell(made, "rank", row.rank);
  cell(made, "item", row.item_id);
  cell(made, "plays n", number.format(row.count));
  cell(made, "item gap" + wrong, row.sketch_item_id);
  cell(made, "plays n" + wrong, number.format(row.sketch_count));
  cell(made, "mark" + wrong, row.wrong ? "\\u2717" : "");
  return made;
}
function size(name, bytes, most) {
  by(name).style.width = 100 * bytes / most + "%";
  by(name + "-bytes").textContent = number.format(bytes) + " bytes";
}
function draw(frame) {
  by("rows").replaceChildren(...frame.rows.map(shown));
  by("progress").value = frame.played;
  const most = Math.max(frame.exact_bytes, frame.sketch_bytes);
  size("exact", frame.exact_bytes, most);
  size("sketch", frame.sketch_bytes, most);
  by("width-head").textContent = "sketch of width " + frame.width;
  say(frame.wrong_rows + " of " + frame.rows.length + " places are wrong after " + number.format(frame.played)
    + " plays.", frame.wrong_rows > 0);
  by("facts").textContent = "The worst estimate is " + number.format(frame.worst_error)
    + " plays too high; none is ever too low."
    + (frame.sketch_bytes > frame.exact_bytes ? " At this width the sketch is larger than the exact counts." : "");
}
function run() {
  if (source) source.close();
  by("again").disabled = true;
  const asked = new URLSearchParams({width: by("width").value, seed: by("seed").value || "1"});
  say("At the start\\u2026");
  source = new EventSource("/v1/race/live?" + asked);
  source.addEventListener("frame", event => draw(JSON.parse(event.data)));
  source.addEventListener("end", event => { event.target.close(); by("again").disabled = false; });
  source.addEventListener("error", event => {
    event.target.close();
    by("again").disabled = false;
    say("The race was interrupted: press Run to start it again.", true);
  });
}
by("chooser").addEventListener("submit", event => { event.preventDefault(); run(); });
by("width").addEventListener("change", run);
run();
"""


def _body() -> str:
    options = "".join(
        f"<option value={width}{' selected' if width == DEFAULT_WIDTH else ''}>{width:,}</option>" for width in WIDTHS
    )
    return f"""
<p>{PLAYS:,} plays of {SONGS:,} songs, counted exactly on the left and by a bare sketch on the right: 4 rows of
<i>width</i> cells, each play added to one cell of each row, the smallest of its 4 cells read back. Places where the
sketch has another song are red. (<a href="/charts">Live charts</a> are better than this, and say how
far off they can be.)</p>
<form id=chooser>
<label>width <select id=width>{options}</select></label>
<label>seed <input id=seed type=number min=0 max={MOST_SEED} value={DEFAULT_SEED} required></label>
<button id=again>Run</button>
</form>
<progress id=progress max={PLAYS} value=0 aria-label="plays so far"></progress>
<table><thead><tr><th class=rank></th><th>exact</th><th class="plays n">plays</th>
<th class=gap id=width-head>sketch</th><th class="plays n">plays</th><th class=mark></th></tr></thead>
<tbody id=rows></tbody></table>
<p id=state role=status></p>
<div class=sizes><span>exact</span><div id=exact></div><span class=n id=exact-bytes></span>
<span>sketch</span><div id=sketch></div><span class=n id=sketch-bytes></span></div>
<p id=facts></p>
<noscript><p>This page needs JavaScript; <code>lakeboard race</code> in a terminal does not.</p></noscript>
"""


RACE_PAGE = LivePage(path="/race", style=_STYLE, body=_body(), script=_SCRIPT)
