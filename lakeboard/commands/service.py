"""What commands that run until they are ended have in common: a log of JSON lines, and how they are asked to end."""

import signal
import sys
import time
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from structlog.typing import WrappedLogger

_SOON_SECONDS = 0.1

LOG_OPTION = click.option(
    "--log", "log_address", metavar="URL", help="Server of the event log. Default: log_url, or that of `lakeboard up`."
)
VIEWS_OPTION = click.option(
    "--views",
    "views_address",
    metavar="URL",
    help="Server of the views. Default: views_url, or that of `lakeboard up`.",
)


def json_lines(part: str) -> "WrappedLogger":
    """Return a logger that writes JSON lines to stderr, each with the name of the part."""
    import structlog  # noqa: PLC0415  `--help` can do without it

    return structlog.wrap_logger(
        structlog.PrintLogger(sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        part=part,
    )


class AskedToEnd:
    """Set by SIGTERM and Ctrl-C. A `threading.Event` could deadlock: its lock may be held when the signal comes."""

    def __init__(self) -> None:
        self._asked = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    def is_set(self) -> bool:
        """Say whether it was asked."""
        return self._asked

    def wait(self, timeout: float) -> bool:
        """Return soon after it was asked, or after so many seconds; say whether it was."""
        end = time.monotonic() + timeout
        while not self._asked and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _SOON_SECONDS))
        return self._asked

    def _ask(self, *_: object) -> None:
        self._asked = True
