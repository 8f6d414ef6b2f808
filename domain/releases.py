"""A release: the set of table versions that passed the proofs together, which is all that readers ever see."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from domain.errors import BadRequestError
from domain.position import NOTHING_READ, BronzePosition, writers_from_json
from domain.rules import Rules


class UnknownReleaseError(BadRequestError):
    """A release was asked for that does not exist."""

    def __init__(self, release: str, newest: int) -> None:
        super().__init__(release, newest)
        self.release = release
        self.newest = newest

    def __str__(self) -> str:
        if not self.newest:
            return "nothing has been counted yet: run `lakeboard recount` first"
        return f"there is no release {self.release}: they go from 1 to {self.newest}, see `lakeboard releases`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One row of `gold/releases`; times UTC, `frontier` exclusive. See `domain/tables.py` for each field."""

    release: int
    created_at: datetime
    cause: str
    frontier: datetime
    position: BronzePosition
    table_versions: Mapping[str, int]
    rules: Rules
    policy_fingerprint: str
    code_version: str
    hours_touched: int
    verdicts: Mapping[str, str]

    def to_row(self) -> dict[str, Any]:
        """Return the row as stored, keyed by column name. Inverse of `from_row`."""
        return {
            "release": self.release,
            "created_at": self.created_at,
            "cause": self.cause,
            "frontier": self.frontier,
            "bronze_version": self.position.version,
            "bronze_events": self.position.events,
            "positions": self.position.to_json(),
            "table_versions": json.dumps(dict(self.table_versions), sort_keys=True),
            "rules_fingerprint": self.rules.fingerprint(),
            "rules": self.rules.to_json(),
            "policy_fingerprint": self.policy_fingerprint,
            "code_version": self.code_version,
            "hours_touched": self.hours_touched,
            "verdicts": json.dumps(dict(self.verdicts), sort_keys=True),
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Read a stored row."""
        position = BronzePosition(row["bronze_version"], row["bronze_events"], writers_from_json(row["positions"]))
        return cls(
            release=row["release"],
            created_at=row["created_at"],
            cause=row["cause"],
            frontier=row["frontier"],
            position=position,
            table_versions=json.loads(row["table_versions"]),
            rules=Rules.from_json(row["rules"]),
            policy_fingerprint=row["policy_fingerprint"],
            code_version=row["code_version"],
            hours_touched=row["hours_touched"],
            verdicts=json.loads(row["verdicts"]),
        )


def counted_position(newest: Release | None) -> BronzePosition:
    """Return how far bronze has been counted: nothing before the first release."""
    return NOTHING_READ if newest is None else newest.position
