"""Suits a session to the size of a run: a small one spends its time on planning and scheduling, not on rows."""

from collections.abc import Mapping

from pyspark.sql import SparkSession

# Up to so many rows a run is quicker on one thread without generated code; measured in docs/decisions/0013.
FEW_ROWS = 50_000
_QUICK = {
    "spark.sql.adaptive.enabled": "false",  # it plans each step again, and one task leaves nothing to adapt
    "spark.sql.codegen.wholeStage": "false",  # compiling takes longer than interpreting a few rows
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",  # a broadcast is a job of its own
    "spark.databricks.delta.snapshotPartitions": "1",
}


class Pace:
    """The configuration of one session, switched between quick for few rows and as it was for many."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._usual = {name: spark.conf.get(name, None) for name in _QUICK}
        self.quick = False

    def suit(self, rows: int) -> None:
        """Suit the session to steps that read so many rows."""
        self._turn(self.are_few(rows))

    @staticmethod
    def are_few(rows: int) -> bool:
        """Say whether so many rows are quicker on one thread."""
        return rows <= FEW_ROWS

    def _turn(self, quick: bool) -> None:
        if quick == self.quick:
            return
        wanted: Mapping[str, str | None] = _QUICK if quick else self._usual
        for name, value in wanted.items():
            if value is None:
                self._spark.conf.unset(name)
            else:
                self._spark.conf.set(name, value)
        self.quick = quick

    def restore(self) -> None:
        """Leave the session as it was found."""
        self._turn(quick=False)
