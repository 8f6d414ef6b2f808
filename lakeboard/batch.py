"""Starting Spark for a command: from settings to a guarded session."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from domain.errors import LakeboardError
from jobs.guard import accelerator_jars, find_java_home, found_versions, jar_paths, require_supported_versions
from jobs.settings import BatchSettings
from lakeboard.settings import Settings


class AcceleratorMissingError(LakeboardError):
    """The accelerator is switched on and was never fetched."""

    def __str__(self) -> str:
        return (
            "the setting accelerator is true, but its jar is not there: run `make accelerator` once to fetch it "
            "(97 MB), or set accelerator to false"
        )


def batch_settings(settings: Settings) -> BatchSettings:
    """Find Java and the jars, and refuse a pair that is known to break before anything is written.

    Raises:
        UnsupportedVersionsError: with each problem and what to do.
        AcceleratorMissingError: it is switched on without its jar.
    """
    java_home = find_java_home(java_home=settings.java_home, search_path=settings.search_path)
    jars = jar_paths(jars=settings.jars)
    require_supported_versions(found_versions(java_home=java_home, jars=jars))
    accelerators = accelerator_jars(jars=settings.jars) if settings.accelerator else []
    if settings.accelerator and not accelerators:
        raise AcceleratorMissingError
    scratch = settings.home.absolute() / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    return BatchSettings(
        lake_root=settings.lake_root.absolute(),
        java_home=java_home or Path("java"),
        jars=(*jars, *accelerators),
        scratch=scratch,
        spark_master=settings.spark_master,
        driver_memory=settings.driver_memory,
        shuffle_partitions=settings.shuffle_partitions,
        accelerator=settings.accelerator,
    )


@contextmanager
def started_spark(settings: Settings, command: str) -> Iterator[Any]:
    """Start Spark for one command and yield its session, which only `jobs` knows what to do with.

    Args:
        settings: Where Java, jars and all state are.
        command: What the user called; names the log of a failure.

    Raises:
        UnsupportedVersionsError: what is installed does not work together.
        AcceleratorMissingError: it is switched on without its jar.
        SparkFailedError: Spark, its JVM or the machine failed, within the block too.
    """
    checked = batch_settings(settings)
    from jobs.sessions import spark_session  # noqa: PLC0415  loads pyspark, which the guard must come before
    from jobs.spark_failures import failures_explained  # noqa: PLC0415

    log = settings.home.absolute() / "logs" / f"{command}-{os.getpid()}.log"
    with failures_explained(log), spark_session(checked) as spark:
        yield spark
