"""Small frames of the lake's tables for tests of pipelines."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from domain.table import Table
from ingest.arrow import arrow_schema

ZONES = ("America/Los_Angeles", "Asia/Kolkata", "Asia/Kathmandu")


def frame(spark: SparkSession, table: Table, rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """Rows of a table, through Arrow; a column that a row lacks is NULL."""
    schema = pa.schema([field.with_nullable(True) for field in arrow_schema(table)])
    return spark.createDataFrame(pa.Table.from_pylist([dict(row) for row in rows], schema=schema))
