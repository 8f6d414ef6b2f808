"""Rows of the lake's tables, made from plays in plain Python: the other half of `tests/lakes.py`."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from domain.events import ALL_REGIONS, LeftOut
from domain.ranking import Scored, ranked, tie_at_cut
from domain.rules import Rules
from domain.table import POSITION_COLUMNS
from domain.tables import COUNT_COLUMNS, HOURS, LEFT_OUT, RESTATEMENTS
from domain.windows import DAY, Granularity, Window, floor_hour

WRITER = "lake_writer/import/test/0"
FIRST_RELEASE_AT = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
BOOKED_AS = {"duplicate": "duplicates", "conflict": "conflicts", "too_short": "excluded"}

Row = dict[str, Any]
Key = tuple[datetime, str, str]  # start of the window, region, item or window length
Numbers = dict[Key, Counter[str]]


@dataclass(frozen=True, slots=True)
class Play:
    """An event as a test says it."""

    event_id: str
    item_id: str
    at: datetime
    region: str = "ZZ"
    count: int = 1
    duration_ms: int | None = None


def at(hour: int, minute: int = 0, *, day: int = 14) -> datetime:
    """A moment of November 2026, UTC."""
    return datetime(2026, 11, day, tzinfo=UTC) + timedelta(hours=hour, minutes=minute)


def charts(length: str, numbers: Numbers, size: int) -> dict[Key, list[Row]]:
    """Sort counts into charts, by the definition in `domain/ranking.py`."""
    scores: dict[tuple[datetime, str], Counter[str]] = defaultdict(Counter)
    for (start, region, item), of_item in numbers.items():
        scores[start, region][item] += of_item["counted"]
        scores[start, ALL_REGIONS][item] += of_item["counted"]
    return {
        (start, region, length): _chart_rows(length, start, region, items, size)
        for (start, region), items in scores.items()
    }


def by_day(hourly: Numbers) -> Numbers:
    """Sum hours to days."""
    days: Numbers = defaultdict(Counter)
    for (hour, region, item), numbers in hourly.items():
        days[Window.containing(hour, Granularity.DAY).start, region, item].update(numbers)
    return dict(days)


def received(play: Play, made: datetime, number: int, index: int) -> Row:
    payload = f"{play.item_id}|{play.region}|{play.at.isoformat()}|{play.count}|{play.duration_ms}"
    said: Row = {"user_id": None, "duration_ms": play.duration_ms, "count": play.count, "region": play.region}
    position = (made, "import/test", 0, 0, number, index)
    return {
        **said,
        **dict(zip(POSITION_COLUMNS, position, strict=True)),
        "event_id": play.event_id,
        "id_hash": _hash(play.event_id),
        "payload_hash": _hash(payload),
        "item_id": play.item_id,
        "event_time": play.at,
        "event_date": play.at.date(),
        "event_hour": play.at.hour,
        "source": "test",
        "source_row": index,
        "time_source": "client",
        "writer": WRITER,
        "writer_seq": number,
    }


def _hash(text: str) -> int:
    """Any 64 bits will do: nothing decides by them."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True)


def left_out(received: Sequence[Row], rules: Rules) -> list[Row]:
    first: dict[str, Row] = {}
    for row in sorted(received, key=position_of):
        first.setdefault(row["event_id"], row)
    judged = (_judged(row, first[row["event_id"]], rules) for row in received)
    return [row for row in judged if row is not None]


def _judged(row: Row, winner: Row, rules: Rules) -> Row | None:
    kept = {name: row[name] for name in LEFT_OUT.column_names if name in row}
    won = {f"winner_{name}": winner[name] for name in (*POSITION_COLUMNS, "payload_hash")}
    if winner is not row:
        equal = row["payload_hash"] == winner["payload_hash"]
        return {**kept, **won, "reason": str(LeftOut.DUPLICATE if equal else LeftOut.CONFLICT)}
    if rules.too_short(row["event_time"], row["duration_ms"]):
        return {**kept, **dict.fromkeys(won), "reason": str(LeftOut.TOO_SHORT)}
    return None


def hourly(received: Sequence[Row], left_out: Sequence[Row]) -> Numbers:
    booked = {position_of(row): BOOKED_AS[row["reason"]] for row in left_out}
    hourly: Numbers = defaultdict(lambda: Counter(dict.fromkeys(COUNT_COLUMNS, 0)))
    for row in received:
        numbers = hourly[floor_hour(row["event_time"]), row["region"], row["item_id"]]
        for measure in ("received", booked.get(position_of(row), "counted")):
            numbers[measure] += row["count"]
            numbers[f"{measure}_events"] += 1
    return dict(hourly)


def counted(key: Key, numbers: Counter[str], *without: str) -> Row:
    start, region, item = key
    row = {"event_date": start.date(), "event_hour": start.hour, "region": region, "item_id": item}
    return {name: value for name, value in (row | dict(numbers)).items() if name not in without}


def restated(number: int, length: str, key: Key, measure: str, old: int, new: int) -> Row:
    values = (number, length, *key, measure, old, new, "late_event", f"{key[0]:%Y-%m}")
    return dict(zip(RESTATEMENTS.column_names, values, strict=True))


def state(hour: datetime, numbers: Sequence[Counter[str]], changed_in: int | None, certified_in: int | None) -> Row:
    sums = (sum(n["received_events"] for n in numbers), sum(n["counted"] for n in numbers))
    state = "provisional" if certified_in is None else "certified"
    values: tuple[date | int | str | None, ...] = (
        hour.date(),
        hour.hour,
        state,
        *sums,
        changed_in,
        certified_in,
    )
    return dict(zip(HOURS.column_names, values, strict=True))


def all_certified(day: datetime, certified_in: Mapping[datetime, int]) -> bool:
    return all(hour in certified_in for hour in Window(day, day + DAY).hours())


def _chart_rows(length: str, start: datetime, region: str, items: Counter[str], size: int) -> list[Row]:
    order = ranked(Scored(item, count) for item, count in items.items())
    shared = {"window_length": length, "event_date": start.date(), "event_hour": start.hour, "region": region}
    shared |= {"window_start": start, "total": sum(items.values()), "items": len(order)}
    shared |= {"tie_at_cut": tie_at_cut(order, size)}
    return [
        {**shared, "rank": rank, "item_id": scored.item_id, "counted": scored.event_count}
        for rank, scored in enumerate(order[:size], 1)
    ]


def said(rows: Sequence[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if name != "release"} for row in rows]


def position_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Order in which events came."""
    return tuple(row[name] for name in POSITION_COLUMNS)
