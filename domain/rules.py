"""Counting rules: which received plays count, with effective dates, as data from `rules.toml`."""

import hashlib
import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from enum import StrEnum
from itertools import pairwise
from typing import Any, Self

from domain.errors import BadRequestError
from domain.windows import Window

BEGINNING = datetime(1900, 1, 1, tzinfo=UTC)  # no event is older, see Policy.oldest_event
END = datetime(9999, 12, 31, tzinfo=UTC)


class Missing(StrEnum):
    """What a rule does with a play that lacks the value it looks at."""

    COUNT = "count"
    EXCLUDE = "exclude"


class InvalidRulesError(BadRequestError):
    """`rules.toml` says something that cannot be a rule."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"rules.toml: {self.problem}; nothing was counted, mend the file and run again"


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimumDuration:
    """From `effective_from` (included, UTC) on, a play shorter than `duration_ms` does not count.

    It holds until the next one begins. `missing` says what a play without a duration does; a NULL user never
    matters to this rule. A play of exactly `duration_ms` counts.
    """

    effective_from: datetime
    duration_ms: int
    missing: Missing


@dataclass(frozen=True, slots=True)
class Rules:
    """All counting rules, in order of their dates. Without any, every play counts."""

    minimum_durations: tuple[MinimumDuration, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `rules.toml`.

        Raises:
            InvalidRulesError: not TOML, an unknown key, a negative duration, or two rules with one date.
        """
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InvalidRulesError(str(error)) from error
        _refuse_unknown(document, {"minimum_duration"}, "the file")
        return cls.from_entries(document.get("minimum_duration", []))

    @classmethod
    def from_entries(cls, entries: Sequence[dict[str, Any]]) -> Self:
        """Build the rules from the entries of `[[minimum_duration]]`, in any order."""
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            message = "minimum_duration is a list of tables: write [[minimum_duration]]"
            raise InvalidRulesError(message)
        rules = sorted((_minimum_duration(entry) for entry in entries), key=lambda rule: rule.effective_from)
        starts = [rule.effective_from for rule in rules]
        if len(set(starts)) != len(starts):
            message = "two [[minimum_duration]] begin at the same moment"
            raise InvalidRulesError(message)
        return cls(tuple(rules))

    def to_json(self) -> str:
        """Return the rules as canonical JSON, as kept in each release. Inverse of `from_json`."""
        entries = [
            {"from": rule.effective_from.isoformat(), "duration_ms": rule.duration_ms, "missing": rule.missing.value}
            for rule in self.minimum_durations
        ]
        return json.dumps({"minimum_duration": entries}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        return cls.from_entries(json.loads(text)["minimum_duration"])

    def fingerprint(self) -> str:
        """Return 16 hex digits that change exactly when what counts may change."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    def minimum_at(self, event_time: datetime) -> MinimumDuration | None:
        """Return the rule in force at this moment of event time."""
        in_force = [rule for rule in self.minimum_durations if rule.effective_from <= event_time]
        return in_force[-1] if in_force else None

    def too_short(self, event_time: datetime, duration_ms: int | None) -> bool:
        """Say whether a play is excluded as too short: the definition that every engine must agree with."""
        rule = self.minimum_at(event_time)
        if rule is None:
            return False
        if duration_ms is None:
            return rule.missing is Missing.EXCLUDE
        return duration_ms < rule.duration_ms


def changed_spans(old: Rules, new: Rules) -> list[Window]:
    """Return the spans of event time in which the two sets of rules may judge a play differently."""
    edges = sorted({BEGINNING, END, *(r.effective_from for rules in (old, new) for r in rules.minimum_durations)})
    spans = [Window(start, end) for start, end in pairwise(edges)]
    return [span for span in spans if _terms(old, span.start) != _terms(new, span.start)]


def _terms(rules: Rules, moment: datetime) -> tuple[int, Missing] | None:
    rule = rules.minimum_at(moment)
    return None if rule is None else (rule.duration_ms, rule.missing)


def _minimum_duration(entry: dict[str, Any]) -> MinimumDuration:
    _refuse_unknown(entry, {"from", "duration_ms", "missing"}, "[[minimum_duration]]")
    duration_ms = entry.get("duration_ms")
    if not isinstance(duration_ms, int) or isinstance(duration_ms, bool) or duration_ms < 0:
        message = f"duration_ms must be a whole number of milliseconds, not {duration_ms!r}"
        raise InvalidRulesError(message)
    missing = entry.get("missing", Missing.COUNT.value)
    if missing not in set(Missing):
        message = f"missing must be 'count' or 'exclude', not {missing!r}"
        raise InvalidRulesError(message)
    effective_from = max(_moment(entry.get("from", BEGINNING)), BEGINNING)
    return MinimumDuration(effective_from=effective_from, duration_ms=duration_ms, missing=Missing(missing))


def _moment(value: object) -> datetime:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError as error:
            message = f"from is no date: {value!r}"
            raise InvalidRulesError(message) from error
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if isinstance(value, date):
        return datetime.combine(value, time(), tzinfo=UTC)
    message = f"from must be a date or a moment, not {value!r}"
    raise InvalidRulesError(message)


def _refuse_unknown(table: dict[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(table.keys() - known)
    if unknown:
        message = f"{where} has unknown keys {', '.join(unknown)}; known: {', '.join(sorted(known))}"
        raise InvalidRulesError(message)
