"""Starts Spark for a benchmark, with the settings of this machine but a home of its own."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession

from domain.rules import Rules
from jobs.guard import accelerator_jars
from jobs.recount import RecountRequest
from jobs.sessions import spark_session
from lakeboard.batch import batch_settings
from lakeboard.settings import Settings

NO_ACCELERATOR = "The accelerator profile was left out: its jar is not here. `make accelerator` fetches it (97 MB)."


def has_accelerator() -> bool:
    """Say whether the jar of the accelerator profile is there."""
    return bool(accelerator_jars(jars=Settings.load().jars))


@contextmanager
def session(
    home: Path, *, accelerator: bool = False, extra_conf: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Start a session as the command line does; what it spills goes below `home`."""
    chosen = msgspec.structs.replace(Settings.load(), home=home, accelerator=accelerator)
    with spark_session(replace(batch_settings(chosen), extra_conf=extra_conf or {})) as spark:
        yield spark


def request(lake_root: Path, now: datetime, *, full: bool = False) -> RecountRequest:
    """Return a recount in which every play counts, at a moment of the made-up data."""
    return RecountRequest(lake_root=lake_root, rules=Rules(), clock=lambda: now, code_version="bench", full=full)
