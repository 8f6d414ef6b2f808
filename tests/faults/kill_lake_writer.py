"""Run as a program: move a log to a lake and kill this process as a named step of the first commit begins.

Usage: kill_lake_writer.py LOG HOME STEP SECONDS. The kill comes SECONDS after that; 0 = at once.
"""

import os
import signal
import sys
import threading
from pathlib import Path

from domain.clock import utc_now
from ingest.log_to_lake_loop import LakeWriterJob, run
from ingest.log_to_lake_state import STATE_FILE
from ingest.redis_log import RedisLog


def main() -> None:
    address, home, fatal_step, seconds = sys.argv[1:]
    steps: list[str] = []

    def die(step: str) -> None:
        steps.append(step)
        if step == fatal_step and "commit" in steps:  # the steps after it are taken at the start too
            if float(seconds) == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            threading.Timer(float(seconds), os.kill, (os.getpid(), signal.SIGKILL)).start()

    job = LakeWriterJob(
        lake_root=Path(home) / "lake",
        open_log=lambda: RedisLog.open(address),
        state_file=Path(home) / "run" / STATE_FILE,
        clock=utc_now,
        tell=lambda event, /, **facts: None,
        once=True,
        on_step=die,
    )
    run(job, threading.Event())


if __name__ == "__main__":
    main()
