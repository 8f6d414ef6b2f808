"""The bytes of an entry: pinned, read back as written, refused when they are of another version or broken."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.hashing import id_hash, partition_number
from ingest.log_entry import NOT_SAID, Play, UnreadableEntryError, decode_plays, encode_plays, numbers_of

pytestmark = pytest.mark.fast

GOLDEN = Path(__file__).parents[1] / "golden" / "log_entry_v1.json"
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=("C", "Z")), max_size=20)

plays = st.builds(
    Play,
    event_id=TEXT,
    id_hash=INT64,
    item_id=TEXT,
    region=st.sampled_from(["ZZ", "IN", "US-CA"]),
    user_id=st.none() | TEXT,
    event_time_us=INT64,
    duration_ms=INT64,
    count=st.integers(1, 2**40),
)

TWO_SENDERS = [
    Play(
        event_id="e-1",
        id_hash=id_hash("e-1"),
        item_id="Für Elise",
        region="DE",
        user_id="ऋतु",
        event_time_us=1_794_650_400_000_000,
        duration_ms=183_000,
        count=1,
    ),
    Play(
        event_id="évènement ☕",
        id_hash=id_hash("évènement ☕"),
        item_id="夜に駆ける",
        region="ZZ",
        user_id=None,
        event_time_us=NOT_SAID,
        duration_ms=NOT_SAID,
        count=2**40,
    ),
]
NO_USERS = [Play("e-2", id_hash("e-2"), "a", "US-CA", None, -1, 0, 1)]
CASES = {
    "two senders, one play with everything and one with the least": (TWO_SENDERS, [("api", 1), ("flights", 1)]),
    "no user at all, a microsecond before 1970": (NO_USERS, [("api", 1)]),
}


def read_back(body: bytes) -> tuple[list[Play], list[tuple[str, int]]]:
    entry = decode_plays(body, where="here")
    columns = (
        entry.event_ids,
        numbers_of(entry.id_hashes).tolist(),
        entry.item_ids,
        entry.regions,
        entry.user_ids or [None] * len(entry),
        numbers_of(entry.event_times_us).tolist(),
        numbers_of(entry.durations_ms).tolist(),
        numbers_of(entry.counts).tolist(),
    )
    return [Play(*values) for values in zip(*columns, strict=True)], entry.sources


def changed(**columns: Any) -> bytes:
    """A good entry with other columns."""
    entry = decode_plays(encode_plays(TWO_SENDERS, [("api", 2)]), where="here")
    names = entry.__struct_fields__
    return msgspec.msgpack.encode([columns.get(name, getattr(entry, name)) for name in names])


@pytest.mark.parametrize("name", CASES)
def test_the_bytes_of_version_1_never_change(name: str) -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))[name]
    given_plays, sources = CASES[name]

    assert encode_plays(given_plays, sources).hex() == golden
    assert read_back(bytes.fromhex(golden)) == (given_plays, sources)


@given(st.lists(plays, max_size=20), st.data())
def test_what_was_written_is_read_back(written: list[Play], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(written)))
    sources = [("one", cut), ("zwei", len(written) - cut)]

    assert read_back(encode_plays(written, sources)) == (written, sources)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "truncated"),
        (b"\xff no entry", "array"),
        (changed(version=2), "2"),
        (changed(kind="scores"), "scores"),
        (changed(event_ids=["one"]), "different lengths"),
        (changed(item_ids=["one"]), "different lengths"),
        (changed(regions=["ZZ"] * 3), "different lengths"),
        (changed(user_ids=[None]), "different lengths"),
        (changed(id_hashes=b"\0" * 8), "different lengths"),
        (changed(event_times_us=b"\0" * 17), "different lengths"),
        (changed(durations_ms=b""), "different lengths"),
        (changed(counts=b"\0" * 24), "different lengths"),
        (changed(sources=[["api", 1]]), "different lengths"),
        (changed(sources=[["api", 3], ["back", -1]]), ">= 0"),
    ],
)
def test_what_is_no_entry_of_a_known_version_is_refused_with_its_place(body: bytes, problem: str) -> None:
    with pytest.raises(UnreadableEntryError, match="log entry 7-0 of plays:3 cannot be read") as refused:
        decode_plays(body, where="7-0 of plays:3")

    assert problem in refused.value.problem


def test_what_a_later_writer_adds_at_the_end_is_ignored() -> None:
    more = msgspec.msgpack.encode([*msgspec.msgpack.decode(encode_plays(NO_USERS, [("api", 1)])), "more"])

    assert read_back(more) == (NO_USERS, [("api", 1)])


def test_partitions_are_by_hash_of_the_bytes_and_pinned() -> None:
    items = ["a", "b", "Für Elise", "夜に駆ける", ""]

    assert [partition_number(item, 8) for item in items] == json.loads(GOLDEN.read_text(encoding="utf-8"))["partitions"]
    assert {partition_number(f"item {n}", 8) for n in range(200)} == set(range(8))
