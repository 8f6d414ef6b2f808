"""Runs the benchmarks: all of them, or those that are named.

python -m bench                    what `make bench` runs; about half an hour on two cores
python -m bench touched_hour       one of them
python -m bench --quick            all of them on little data, to see that they run; the numbers say nothing
python -m bench.recount_speed -h   each one has arguments of its own
"""

import argparse
import time
from collections.abc import Callable, Sequence

from bench import import_speed, recount_speed, touched_hour
from bench.report import print_line, print_machine


def _import_speed(quick: bool) -> None:
    import_speed.run(20_000 if quick else import_speed.ROWS)


def _recount_speed(quick: bool) -> None:
    events, rounds = (20_000, 1) if quick else (recount_speed.EVENTS, recount_speed.ROUNDS)
    recount_speed.run(events, rounds=rounds, accelerator=True)


def _exact_hours(quick: bool) -> None:
    events, rounds = (20_000, 1) if quick else (recount_speed.HOURS_EVENTS, recount_speed.ROUNDS)
    recount_speed.run(events, rounds=rounds, accelerator=True, hours_only=True)


def _touched_hour(quick: bool) -> None:
    days, an_hour, rounds = (
        ((1, 2), 50, 1) if quick else (touched_hour.DAYS, touched_hour.EVENTS_AN_HOUR, touched_hour.ROUNDS)
    )
    touched_hour.run(days, events_an_hour=an_hour, rounds=rounds)


BENCHMARKS: dict[str, Callable[[bool], None]] = {
    "import_speed": _import_speed,
    "recount_speed": _recount_speed,
    "exact_hours": _exact_hours,
    "touched_hour": _touched_hour,
}


def main(argv: Sequence[str] | None = None) -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="little data, to see that they run")
    arguments = parser.parse_args(argv)
    if unknown := sorted(set(arguments.names) - BENCHMARKS.keys()):
        parser.error(f"there is no benchmark {', '.join(unknown)}: choose among {', '.join(BENCHMARKS)}")
    print_machine()
    began = time.perf_counter()
    for name in arguments.names or BENCHMARKS:
        BENCHMARKS[name](arguments.quick)
    print_line(f"\nAll of it took {(time.perf_counter() - began) / 60:.1f} minutes.")


if __name__ == "__main__":
    main()
