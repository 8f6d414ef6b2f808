"""Pure PySpark: DataFrames in, one DataFrame out; no reads, no writes, no collect, no clock."""
