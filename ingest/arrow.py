"""The tables of the lake as Arrow schemas."""

import pyarrow as pa

from domain.table import Table, Type

_ARROW = {
    Type.STRING: pa.string(),
    Type.INT: pa.int32(),
    Type.LONG: pa.int64(),
    Type.DATE: pa.date32(),
    Type.TIMESTAMP: pa.timestamp("us", "UTC"),
    Type.BOOLEAN: pa.bool_(),
}


def arrow_schema(table: Table) -> pa.Schema:
    """Return a table's columns in order, with their NOT NULLs."""
    return pa.schema([pa.field(c.name, _ARROW[c.type], nullable=c.nullable) for c in table.columns])
