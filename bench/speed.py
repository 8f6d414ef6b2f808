"""What `make bench-speed` runs: live counting from the log to the reader, beside what people build first.

python -m bench.speed             all of it, about four minutes on two cores
python -m bench.speed --quick     little of each, to see that it runs; the numbers say nothing
"""

import argparse
from collections.abc import Sequence

from bench import live_stack, sketch_error, speed_consumer, speed_core, speed_peers
from bench.report import print_machine


def main(argv: Sequence[str] | None = None) -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.speed", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="little of each, to see that it runs")
    quick = parser.parse_args(argv).quick
    print_machine()
    speed_peers.run(20_000 if quick else speed_peers.PLAYS)
    speed_core.run(50_000 if quick else speed_core.PLAYS)
    sketch_error.run(50_000 if quick else sketch_error.PLAYS)
    speed_consumer.run(20_000 if quick else speed_consumer.PLAYS)
    live_stack.run(
        live_stack.RATES,
        2.0 if quick else live_stack.SECONDS,
        read_seconds=1.0 if quick else live_stack.READ_SECONDS,
    )


if __name__ == "__main__":
    main()
