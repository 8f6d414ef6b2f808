"""Starting Spark for a command: from settings to a guarded session."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.guard import accelerator_jars, find_java_home, found_versions, jar_paths, require_supported_versions
from jobs.settings import BatchSettings
from lakeboard.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def batch_settings(settings: Settings) -> BatchSettings:
    """Find Java and the jars, and refuse a pair that is known to break before anything is written.

    Raises:
        UnsupportedVersionsError: with each problem and what to do.
    """
    java_home = find_java_home(java_home=settings.java_home, search_path=settings.search_path)
    jars = jar_paths(jars=settings.jars)
    require_supported_versions(found_versions(java_home=java_home, jars=jars))
    scratch = settings.home.absolute() / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    return BatchSettings(
        lake_root=settings.lake_root.absolute(),
        java_home=java_home or Path("java"),
        jars=(*jars, *(accelerator_jars(jars=settings.jars) if settings.accelerator else ())),
        scratch=scratch,
        spark_master=settings.spark_master,
        driver_memory=settings.driver_memory,
        shuffle_partitions=settings.shuffle_partitions,
        accelerator=settings.accelerator,
    )


@contextmanager
def started_spark(settings: Settings) -> "Iterator[SparkSession]":
    """Start Spark for one command."""
    from jobs.sessions import spark_session  # noqa: PLC0415  loads pyspark, which the guard must come before

    with spark_session(batch_settings(settings)) as spark:
        yield spark
