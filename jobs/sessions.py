"""The one place that starts Spark."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from jobs.settings import BatchSettings

# No .crc beside each file, and no `chmod` started for each: see docs/decisions/0012.
_LOCAL_FILES = "com.globalmentor.apache.hadoop.fs.NakedLocalFileSystem"

# Delta's scans stay with Spark; what they read is handed over in columns and aggregated natively.
ACCELERATOR = {
    "spark.plugins": "org.apache.spark.CometPlugin",
    "spark.shuffle.manager": "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager",
    "spark.comet.enabled": "true",
    "spark.comet.exec.enabled": "true",
    "spark.comet.exec.shuffle.enabled": "true",
    "spark.comet.convert.parquet.enabled": "true",
    "spark.memory.offHeap.enabled": "true",
    "spark.memory.offHeap.size": "4g",
}


@contextmanager
def spark_session(settings: BatchSettings) -> Iterator[SparkSession]:
    """Start a session with Delta, and stop it at the end.

    The Java and the jars are those of the settings, so that nothing is downloaded and nothing on PATH decides.
    """
    with _java_of(settings.java_home):
        session = _builder(settings).getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def _builder(settings: BatchSettings) -> SparkSession.Builder:
    jars = [str(jar) for jar in settings.jars]
    builder: SparkSession.Builder = SparkSession.builder.master(settings.spark_master).appName("lakeboard")
    configuration = {
        "spark.jars": ",".join(jars),
        "spark.driver.extraClassPath": ":".join(jars),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.host": "127.0.0.1",  # host names of laptops resolve slowly or not at all
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(settings.scratch),
        "spark.sql.warehouse.dir": str(settings.scratch / "warehouse"),
        "spark.hadoop.fs.file.impl": _LOCAL_FILES,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",  # the fallback turns NULL into 'nan'
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",  # else VACUUM runs 10,000 tasks
        "spark.sql.maxPlanStringLength": "1000",  # plans as text cost more than they tell; nobody looks at a UI
        "spark.sql.ui.explainMode": "simple",
        "spark.python.sql.dataFrameDebugging.enabled": "false",  # else each column asks Java where Python made it
        **(ACCELERATOR if settings.accelerator else {}),
        **settings.extra_conf,
        "spark.driver.extraJavaOptions": _java_options(settings),
    }
    for name, value in configuration.items():
        builder = builder.config(name, value)
    return builder


def _java_options(settings: BatchSettings) -> str:
    # The files of Delta's logs are still made through Hadoop's own class, with a chmod each: one process, not two.
    forks = "-Djdk.lang.Process.launchMechanism=VFORK"
    quiet = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
    return f"{quiet} {forks} {settings.extra_conf.get('spark.driver.extraJavaOptions', '')}".strip()


@contextmanager
def _java_of(java_home: Path) -> Iterator[None]:
    """Spark's launcher reads these two from the environment only, and only while it starts."""
    wanted = {"JAVA_HOME": str(java_home), "PYSPARK_PYTHON": sys.executable}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is not None:
                os.environ[name] = value
            elif name != "PYSPARK_PYTHON":  # workers of later jobs still read that one
                del os.environ[name]
