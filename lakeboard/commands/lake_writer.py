"""`lakeboard lake-writer`: moves accepted plays from the event log to the lake."""

import signal
import sys
import time
from functools import partial

import click

from lakeboard.settings import Settings

_SOON_SECONDS = 0.1


@click.command(
    "lake-writer",
    epilog="""\b
Examples:
  lakeboard lake-writer                      as `lakeboard up` runs it
  lakeboard lake-writer --once               move what is there, then leave
  lakeboard lake-writer --log redis://10.0.0.5:6379 --every 5

It leaves on SIGTERM and Ctrl-C after committing what it has read. Killed at any point, the next one goes on
where the lake stands: nothing is lost, nothing is there twice.""",
)
@click.option(
    "--log", "address", metavar="URL", help="Server of the event log. Default: log_url, or that of `lakeboard up`."
)
@click.option(
    "--every", type=click.FloatRange(min=0.1), metavar="SECONDS", help="Commit so often. Default: commit_seconds."
)
@click.option(
    "--rows", type=click.IntRange(min=1), metavar="N", help="Commit earlier after N events. Default: commit_rows."
)
@click.option("--once", is_flag=True, help="Leave when all that is in the log is in the lake.")
@click.option("--no-wait", is_flag=True, help="Leave with exit code 1 when another lake writer works on this lake.")
@click.pass_obj
def lake_writer_command(
    settings: Settings, /, *, address: str | None, every: float | None, rows: int | None, once: bool, no_wait: bool
) -> None:
    """Move accepted plays from the event log to the lake, exactly once, and let the log forget them.

    One lake writer works on a lake; a second one waits. What it does stands on stderr as JSON lines, and how it is
    in run/lake-writer.json of LAKEBOARD_HOME.
    """
    import structlog  # noqa: PLC0415  with the next three: `--help` can do without them

    from ingest.log_to_lake_loop import LakeWriterJob, run  # noqa: PLC0415
    from ingest.log_to_lake_state import STATE_FILE  # noqa: PLC0415
    from ingest.redis_log import RedisLog  # noqa: PLC0415

    log = structlog.wrap_logger(
        structlog.PrintLogger(sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        part="lake-writer",
    )
    job = LakeWriterJob(
        lake_root=settings.lake_root,
        open_log=partial(RedisLog.open, address or settings.log_address, clock=settings.entry_clock),
        state_file=settings.run_folder / STATE_FILE,
        clock=settings.machine_clock,
        tell=log.info,
        every_seconds=every or settings.commit_seconds,
        rows=rows or settings.commit_rows,
        once=once,
        wait=not no_wait,
    )
    run(job, _AskedToEnd())


class _AskedToEnd:
    """Set by SIGTERM and Ctrl-C. A `threading.Event` could deadlock: its lock may be held when the signal comes."""

    def __init__(self) -> None:
        self._asked = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    def is_set(self) -> bool:
        """Say whether it was asked."""
        return self._asked

    def wait(self, timeout: float) -> None:
        """Return soon after it was asked, or after so many seconds."""
        end = time.monotonic() + timeout
        while not self._asked and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _SOON_SECONDS))

    def _ask(self, *_: object) -> None:
        self._asked = True
