"""How fast are plays accepted, each on disk before its answer? Ours beside two plain builds, in the same run.

One play a request at 1, 32 and 128 connections, and arrays of 1,000. Everything runs on this machine, the load
generator too, so the services get what it leaves. Afterwards the events in each store are counted: those acknowledged
must be there, and nothing beyond the requests that were out when the load ended. Then a little is sent by a client that
waits for every answer, and the store must hold exactly the acknowledged ones of it.

  python -m bench.ingest --seconds 5
  python -m bench.ingest --quick           to see that it runs; the numbers say nothing
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.ingest_builds import Build, Service, builds
from bench.ingest_load import INSTALL_WRK, Load, Loaded, has_wrk, send_load
from bench.report import WrongResultError, print_line, print_machine, print_table, rate, ratio, say

SECONDS = 8.0
WARM_UP_SECONDS = 2.0
QUICK_SECONDS = 1.0
EXACT_SECONDS = 1.0
EXACT = "exact"  # their ids begin so


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One kind of load, and what section 11 of the design wants of it."""

    name: str
    rows: int
    connections: int
    target: str = ""


SCENARIOS = (
    Scenario(name="single, 1 connection", rows=1, connections=1),
    Scenario(name="single, 32 connections", rows=1, connections=32, target=">= 8,000/s, p99 < 20 ms"),
    Scenario(name="single, 128 connections", rows=1, connections=128),
    Scenario(name="arrays of 1,000, 8 connections", rows=1_000, connections=8, target=">= 200,000/s"),
)


def run(seconds: float, *, warm_up_seconds: float) -> None:
    """Measure every build and print the table."""
    found = builds()
    print_line(
        f"Load by {_generator()}, {seconds:g} s each after {warm_up_seconds:g} s; load average {_load_average()}."
    )
    for build in found:
        print_line(f"  {build.name}: {build.what}{f'; LEFT OUT, {build.missing}' if build.missing else ''}.")
    measured = {
        build.name: _measured(build, seconds, warm_up_seconds=warm_up_seconds)
        for build in found
        if build.missing is None
    }
    print_table(
        "Plays accepted",
        ["load, build", "plays/s", "p50 ms", "p99 ms", "errors", "wanted", "lakeboard / it"],
        [line for scenario in SCENARIOS for line in _lines(scenario, measured)],
        remark="Each store held what was acknowledged (and at most what was out when a load ended); where every answer "
        "was waited for, exactly the acknowledged plays. lakeboard's key "
        f"had its limits raised out of the way. Load average at the end: {_load_average()}.",
    )


def _measured(build: Build, seconds: float, *, warm_up_seconds: float) -> Mapping[str, Loaded]:
    """Run all loads against one build, and count what it holds in the end."""
    results: dict[str, Loaded] = {}
    acknowledged = unanswered = 0
    with build.start() as service:
        for number, scenario in enumerate(SCENARIOS):
            say(f"ingest: {build.name}, {scenario.name}")
            for part, length in (("warm", warm_up_seconds), ("run", seconds)):
                load = Load(run=f"{number}{part}", rows=scenario.rows, connections=scenario.connections, seconds=length)
                loaded = _sent(service, load)
                acknowledged += loaded.accepted * scenario.rows
                unanswered += (loaded.unanswered + loaded.broken + loaded.refused) * scenario.rows
                results[scenario.name] = loaded
        _require_held(build, acknowledged, unanswered, held=service.held(""))
        _require_exact(build, service)
    return results


def _sent(service: Service, load: Load, *, to_the_end: bool = False) -> Loaded:
    return send_load(service.url, service.key, load, to_the_end=to_the_end)


def _require_exact(build: Build, service: Service) -> None:
    """Send a little with a client that waits for every answer: the store then has exactly what was acknowledged.

    Raises:
        WrongResultError: it does not.
    """
    acknowledged = unknown = 0
    for scenario in (SCENARIOS[1], SCENARIOS[-1]):
        load = Load(
            run=f"{EXACT}{scenario.rows}", rows=scenario.rows, connections=scenario.connections, seconds=EXACT_SECONDS
        )
        loaded = _sent(service, load, to_the_end=True)
        acknowledged += loaded.accepted * scenario.rows
        unknown += loaded.refused * scenario.rows
    held = service.held(EXACT)
    if not acknowledged <= held <= acknowledged + unknown:
        what = f"events that {build.name} took while every answer was waited for"
        raise WrongResultError(what, expected=acknowledged, found=held)
    say(
        f"ingest: {build.name} holds {held:,} of the load whose every answer was waited for; "
        f"{acknowledged:,} were acknowledged"
    )


def _require_held(build: Build, acknowledged: int, unanswered: int, *, held: int) -> None:
    """See that everything acknowledged is held, and nothing but it and what may have been out at the end.

    Raises:
        WrongResultError: it is not so.
    """
    if not acknowledged <= held <= acknowledged + unanswered:
        wanted = f"{acknowledged} acknowledged, at most {unanswered} more without an answer"
        what = f"events held by {build.name}"
        raise WrongResultError(what, expected=wanted, found=held)
    say(f"ingest: {build.name} holds {held:,}; {acknowledged:,} were acknowledged, the rest was out at the end")


def _lines(scenario: Scenario, measured: Mapping[str, Mapping[str, Loaded]]) -> list[Sequence[str]]:
    ours = measured["lakeboard"][scenario.name]
    lines: list[Sequence[str]] = []
    for name, results in measured.items():
        one = results[scenario.name]
        plays, our_plays = one.accepted * scenario.rows, ours.accepted * scenario.rows
        lines.append(
            [
                f"{scenario.name}: {name}",
                rate(plays, one.seconds),
                f"{one.p50_ms:.2f}",
                f"{one.p99_ms:.2f}",
                f"{one.refused + one.broken:,}",
                scenario.target if name == "lakeboard" else "",
                "" if name == "lakeboard" or not plays else ratio(our_plays / ours.seconds, plays / one.seconds),
            ]
        )
    return lines


def _generator() -> str:
    if has_wrk():
        return "wrk (one thread)"
    return f"the bench's own asyncio client, which takes more of the processor than wrk ({INSTALL_WRK})"


def _load_average() -> str:
    return ", ".join(f"{one:.1f}" for one in os.getloadavg())


def main(argv: Sequence[str] | None = None) -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.ingest", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each load (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="little load, to see that it runs")
    arguments = parser.parse_args(argv)
    print_machine()
    seconds, warm_up = (QUICK_SECONDS, QUICK_SECONDS) if arguments.quick else (arguments.seconds, WARM_UP_SECONDS)
    run(seconds, warm_up_seconds=warm_up)


if __name__ == "__main__":
    main()
