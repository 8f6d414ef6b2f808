"""Run as a program: count a lake and kill this process in the middle of a named step.

Usage: kill_recount.py LAKE_ROOT NOW STEP SECONDS. The kill comes SECONDS after the step began.
"""

import os
import signal
import sys
import threading
from datetime import datetime
from pathlib import Path

from jobs.recount import run
from jobs.sessions import spark_session
from tests.conftest import batch_settings
from tests.counted_lakes import request_of


def main() -> None:
    lake_root, now, fatal_step, seconds = sys.argv[1:]

    def die(step: str) -> None:
        if step == fatal_step:
            threading.Timer(float(seconds), os.kill, (os.getpid(), signal.SIGKILL)).start()

    with spark_session(batch_settings(Path(lake_root).parent / "scratch")) as spark:
        run(spark, request_of(Path(lake_root), datetime.fromisoformat(now)), on_step=die)


if __name__ == "__main__":
    main()
