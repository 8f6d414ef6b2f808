"""How long from accepted to visible, and how fast are ready charts read? A whole stack as `lakeboard up` runs it.

Plays are posted at a steady rate in arrays of 100. Meanwhile a probe posts one play of an item of its own in a region
of its own, and asks for that region's chart until the item is there: from the 202 to the answer that shows it. Then,
with the load gone, one chart is read as fast as it is answered.

  python -m bench.live_stack --rate 5000 --seconds 30
"""

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx

from bench.ingest_builds import LIMITS, free_port, service_process
from bench.ingest_load import INSTALL_WRK, has_wrk, loaded_by, wrk_command
from bench.report import WrongResultError, print_line, print_machine, print_table, rate, say
from serving.keys import KeyFile, Role

RATES = (1_000, 5_000)
SECONDS = 40.0
READ_SECONDS = 8.0
_ROWS = 100
_ITEMS = 20_000
_POLL_SECONDS = 0.01
_VISIBLE_SECONDS = 30.0
_OK, _ACCEPTED = 200, 202
_READS = (("/v1/charts/top?window=1h&region=IN&n=100", 32), ("/v1/top?k=10&window=1h", 32), ("/v1/top?k=10", 128))


@dataclass(frozen=True, slots=True)
class Stack:
    """A running stack: its address, the text of a key without limits, and its home."""

    url: str
    key: str
    home: Path

    def client(self) -> httpx.Client:
        """Return a client of it."""
        headers = {"Authorization": f"Bearer {self.key}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=20.0, trust_env=False)


@contextmanager
def running() -> Iterator[Stack]:
    """Run log, views, lake writer, consumer, merger and API in a folder of their own."""
    with tempfile.TemporaryDirectory(prefix="lakeboard-bench-") as name:
        home, port = Path(name), free_port()
        _, key = KeyFile(home).add("bench", [Role.PRODUCER, Role.READER, Role.GAME_SERVER], LIMITS)
        command = [sys.executable, "-m", "lakeboard", "up", "--no-hourly", "--port", str(port)]
        with service_process(command, port, "/healthz", LAKEBOARD_HOME=name):
            stack = Stack(f"http://127.0.0.1:{port}", key, home)
            _wait_for_charts(stack)
            yield stack


def _wait_for_charts(stack: Stack) -> None:
    deadline = time.monotonic() + 60.0
    with stack.client() as client:
        while client.get("/v1/top").status_code != _OK:
            if time.monotonic() > deadline:
                what = "the first live chart"
                raise WrongResultError(what, expected="within a minute", found="none")
            time.sleep(0.1)


class _Load(threading.Thread):
    """Posts plays at a steady rate until it is stopped."""

    def __init__(self, stack: Stack, a_second: int) -> None:
        super().__init__(daemon=True)
        self.accepted = 0
        self.refused = 0
        self._stack = stack
        self._run = f"load-{a_second}"  # begins its ids: another load is of other plays
        self._gap = _ROWS / a_second
        self._ended = threading.Event()

    def run(self) -> None:
        """Send an array each time one is due; what could not be sent in time is not made up for."""
        due, number = time.monotonic(), 0
        with self._stack.client() as client:
            while not self._ended.is_set():
                number += 1
                answer = client.post("/v1/events", content=_array(self._run, number))
                self.accepted += _ROWS * (answer.status_code == _ACCEPTED)
                self.refused += answer.status_code != _ACCEPTED
                due = max(due + self._gap, time.monotonic())
                self._ended.wait(due - time.monotonic())

    def stop(self) -> None:
        """Stop and wait for the last answer."""
        self._ended.set()
        self.join()


def _array(run: str, number: int) -> bytes:
    rows = [
        {"event_id": f"{run}-{number}-{place}", "item_id": f"Song {(number * _ROWS + place) * 7919 % _ITEMS:06d}",
         "region": ("IN", "US", "BR", "DE")[place % 4]}
        for place in range(_ROWS)
    ]  # fmt: skip
    return json.dumps(rows).encode()


def _probes(stack: Stack, run: str, seconds: float) -> list[float]:
    """Return for each probe how many seconds went from its 202 to a chart with it."""
    found: list[float] = []
    dice = random.Random(1)
    end = time.monotonic() + seconds
    with stack.client() as client:
        while time.monotonic() < end:
            time.sleep(dice.random())  # parts work once a second: a probe comes at any moment of theirs
            item = f"probe-{run}-{10**6 - len(found)}"  # of equal counts the first by name is first: the newest
            sent = client.post("/v1/events", json={"event_id": item, "item_id": item, "region": f"PROBE-{run}"})
            if sent.status_code != _ACCEPTED:
                what = "the answer to a probe"
                raise WrongResultError(what, expected=_ACCEPTED, found=sent.status_code)
            found.append(_seconds_until_visible(client, item, f"PROBE-{run}"))
    return found


def _seconds_until_visible(client: httpx.Client, item: str, region: str) -> float:
    began = time.monotonic()
    while (passed := time.monotonic() - began) < _VISIBLE_SECONDS:
        chart: dict[str, Any] = client.get(f"/v1/charts/top?window=1m&region={region}&n=3").json()
        if any(row["item_id"] == item for row in chart.get("entries", ())):
            return time.monotonic() - began
        time.sleep(_POLL_SECONDS)
    what = f"seconds until {item} is visible"
    raise WrongResultError(what, expected=f"less than {_VISIBLE_SECONDS:g}", found=passed)


def _latency_row(stack: Stack, a_second: int, seconds: float) -> Sequence[str]:
    say(f"live_stack: {a_second:,} plays/s for {seconds:g} s, with probes")
    load = _Load(stack, a_second)
    load.start()
    began = time.monotonic()
    try:
        found = _probes(stack, f"{a_second}", seconds)
    finally:
        load.stop()
    passed = time.monotonic() - began
    cut = quantiles(found, n=100)[98] if len(found) > 1 else found[0]
    numbers = (median(found), cut, max(found))
    return [f"{a_second:,}", rate(load.accepted, passed), f"{load.refused}", f"{len(found)}",
            *(f"{number:.2f}" for number in numbers)]  # fmt: skip


def _read_row(stack: Stack, path: str, connections: int, seconds: float) -> Sequence[str]:
    say(f"live_stack: reading {path} over {connections} connections")
    command = wrk_command("reads.lua", stack.url + path, stack.key, connections=connections, seconds=seconds)
    one = loaded_by(command, seconds)
    if one.refused or one.broken:
        what = f"answers other than 200 of {path}"
        raise WrongResultError(what, expected=0, found=one.refused + one.broken)
    return [path, f"{connections}", rate(one.requests, one.seconds), f"{one.p50_ms:.2f}", f"{one.p99_ms:.2f}"]


def run(rates: Sequence[int], seconds: float, *, read_seconds: float) -> None:
    """Measure and print both tables."""
    with running() as stack:
        latencies = [_latency_row(stack, a_second, seconds) for a_second in rates]
        reads = [_read_row(stack, path, n, read_seconds) for path, n in _READS] if has_wrk() else []
    print_table(
        "From accepted to visible in a chart, under load; wanted: median below 1 s, p99 below 2 s",
        ["plays/s asked for", "taken", "refused", "probes", "median s", "p99 s", "largest s"],
        latencies,
        remark="All parts, the load and the probe share the machine. The chart is asked for every 10 ms.",
    )
    if not reads:
        print_line(f"\nCached chart reads: left out, they need wrk ({INSTALL_WRK}).")
        return
    print_table(
        "Cached chart reads, one API worker; wanted: 20,000/s, p99 below 5 ms",
        ["chart", "connections", "reads/s", "p50 ms", "p99 ms"],
        reads,
        remark="Load by wrk on the same machine; key and limits checked; the rest of the stack goes on meanwhile.",
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, action="append", help="plays a second; say it several times for several")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each rate")
    parser.add_argument("--read-seconds", type=float, default=READ_SECONDS, help="of each chart that is read")
    arguments = parser.parse_args(argv)
    print_machine()
    run(arguments.rate or RATES, arguments.seconds, read_seconds=arguments.read_seconds)


if __name__ == "__main__":
    main()
