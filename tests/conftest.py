"""One Spark session for each process of the run, made for many small jobs."""

import gc
import os
import sys
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from jobs.guard import find_java_home, jar_paths
from jobs.settings import BatchSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Small jobs spend their time on compiling generated code: interpreting is twice as fast for them.
# One run is over before the JVM's second compiler pays, which takes a third of the time of both cores.
SMALL_JOBS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "2",
}


def only_fast(config: pytest.Config) -> bool:
    return bool(config.option.markexpr in ("fast", "fast and not law"))


def pytest_configure(config: pytest.Config) -> None:
    """Try fewer examples where all tests together have 10 s; no deadline, as first calls load libraries for seconds."""
    if only_fast(config):
        save_time(config)
    settings.register_profile("fast", deadline=None, max_examples=5)
    settings.register_profile("every test", deadline=None, max_examples=100)
    settings.load_profile("fast" if only_fast(config) else "every test")


class WithoutPandas(MetaPathFinder):
    """Makes pandas seem not installed: pyarrow would import it at the first array that it makes of a list."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(name=fullname)


def save_time(config: pytest.Config) -> None:
    """Leave out what costs a run of fast tests a second and what none of them needs."""
    sys.meta_path.insert(0, WithoutPandas())
    gc.disable()  # a quarter of the time; what these tests leave in memory is little
    config.option.timeout_method = "signal"  # no thread a test: nothing here hangs in a JVM


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """In a run of fast tests only, leave out files without any: importing them would load Spark for seconds."""
    if not only_fast(config) or collection_path.suffix != ".py":
        return None
    return True if "pytest.mark.fast" not in collection_path.read_text(encoding="utf-8") else None


def batch_settings(scratch: Path) -> BatchSettings:
    """Settings as set-up made them; the tests that need Spark can't run without it."""
    java_home = find_java_home(java_home=os.environ.get("JAVA_HOME"), search_path=os.environ.get("PATH"))
    assert java_home is not None, "no Java: run make setup"
    jars = tuple(jar_paths())
    assert jars, "no Delta jars: run make setup"
    return BatchSettings(
        lake_root=scratch, java_home=java_home, jars=jars, scratch=scratch, driver_memory="2g", extra_conf=SMALL_JOBS
    )


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    from jobs.sessions import spark_session  # noqa: PLC0415  fast runs are free of pyspark

    with spark_session(batch_settings(tmp_path_factory.mktemp("spark"))) as session:
        yield session
