"""The tables of the lake as Spark schemas."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from domain.table import Table, Type

_SPARK: dict[Type, T.DataType] = {
    Type.STRING: T.StringType(),
    Type.INT: T.IntegerType(),
    Type.LONG: T.LongType(),
    Type.DATE: T.DateType(),
    Type.TIMESTAMP: T.TimestampType(),
    Type.BOOLEAN: T.BooleanType(),
}


def spark_schema(table: Table) -> T.StructType:
    """Return a table's columns in order, with their NOT NULLs."""
    return T.StructType([T.StructField(c.name, _SPARK[c.type], nullable=c.nullable) for c in table.columns])


def conformed(rows: DataFrame, table: Table) -> DataFrame:
    """Select a table's columns in order and with their types; a missing column raises."""
    return rows.select(*[F.col(c.name).cast(_SPARK[c.type]) for c in table.columns])
