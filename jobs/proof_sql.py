"""What the proofs of `lakeboard verify` are made of: a statement, and SQL that finds what contradicts it.

Written against the views of `lakeboard sql`, so that a failing proof can be pasted there and looked into.
"""

# ruff: noqa: S608  the SQL is made of our own names, and of texts of the lake that are quoted by `text`

from collections.abc import Iterable
from dataclasses import dataclass

from domain.tables import COUNT_COLUMNS

COPY = "reason IN ('duplicate', 'conflict')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """One statement about the lake.

    Attributes:
        name: Stable, for `--only` and for alerts.
        says: What holds when `failing` returns nothing.
        compared: Query for the number of rows the proof looks at.
        failing: Query for the rows that contradict it.
    """

    name: str
    says: str
    compared: str
    failing: str


def differences(expected: str, stored: str) -> str:
    """Return a query for rows that are on one side only, or more often on one: equality of bags."""
    return f"""
SELECT CASE WHEN sum(side) > 0 THEN 'missing' ELSE 'unexpected' END AS problem, * EXCLUDE (side)
FROM (SELECT *, 1 AS side FROM ({expected})
  UNION ALL BY NAME SELECT *, -1 AS side FROM ({stored}))
GROUP BY ALL HAVING sum(side) <> 0"""


def unbalanced(keys: str, *sides: str) -> str:
    """Return a query for keys whose numbers do not cancel out, with what is left over.

    Each side has the keys, `rows` and `COUNT_COLUMNS`, the stored one negated: what is left over is missing
    there when positive and too much when negative. `rows` finds keys that are missing or repeated.
    """
    left = ", ".join(f"sum({name}) AS {name}" for name in ("rows", *COUNT_COLUMNS))
    wrong = " OR ".join(f"sum({name}) <> 0" for name in ("rows", *COUNT_COLUMNS))
    together = "\nUNION ALL BY NAME ".join(sides)
    return f"\nSELECT {keys}, {left}\nFROM ({together})\nGROUP BY {keys} HAVING {wrong}"


def equal(one: str, other: str, names: Iterable[str]) -> str:
    """Return the condition that two relations agree in these columns, none of them NULL."""
    return " AND ".join(f'{one}."{name}" = {other}."{name}"' for name in names)


def rows_of(view: str) -> str:
    """Return a query for the number of rows of a view."""
    return f"SELECT count(*) FROM {view}"


def text(value: str) -> str:
    """Return a SQL literal."""
    return "'" + value.replace("'", "''") + "'"
