"""The bytes of an entry of scores: pinned, read back as written, refused when of another version or broken."""

import json
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.board_tables import SCORES
from domain.boards.events import NOT_SAID, BoardEvent, EventKind, Position
from domain.log import Entry, EntryId, Partition, Stream
from ingest.arrow import arrow_schema
from ingest.log_entry import UnreadableEntryError
from ingest.log_to_lake_scores import scores_rows
from ingest.score_entry import decode_scores, encode_scores, events_of, fingerprint, placed_events

pytestmark = pytest.mark.fast

GOLDEN = Path(__file__).parents[1] / "golden" / "scores_entry_v1.json"
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=("C", "Z")), max_size=20)
EVENTS = st.lists(
    st.builds(BoardEvent, st.sampled_from(EventKind), TEXT, TEXT, TEXT, INT64, INT64, INT64, TEXT, INT64),
    min_size=1, max_size=5,
)  # fmt: skip
KNOWN = [
    BoardEvent(EventKind.SCORE, "chess", "夜", "m-1", 2**62, 1_794_650_400_000_000, -5, "", NOT_SAID),
    BoardEvent(EventKind.SCORE, "default", "ann", "m-2", -1, NOT_SAID, 7, "", NOT_SAID),
    BoardEvent(EventKind.BAN, "", "ann", "", 0, NOT_SAID, 0, "cheated", 1_794_650_400_000_001),
]


def test_bytes_of_version_1_stay_readable() -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    body = bytes.fromhex(golden["entry"])

    assert list(events_of(decode_scores(body, where="x"))) == KNOWN
    assert encode_scores(KNOWN, [("api", 1), ("game", 2)]) == body
    of_end = partial(fingerprint, game="g", match_id="m", player_id="ä", score=-3)
    assert of_end(ended_us=5) == golden["fingerprint"]
    assert of_end(ended_us=NOT_SAID) == golden["fingerprint_without_end"]


@given(EVENTS)
def test_what_was_written_is_read_back(events: list[BoardEvent]) -> None:
    assert list(events_of(decode_scores(encode_scores(events, [("s", len(events))]), where="x"))) == events


def test_events_have_the_place_and_time_of_their_entry() -> None:
    entry = Entry(EntryId(1000, 3), encode_scores(KNOWN, [("s", 3)]))

    placed = placed_events(entry, where="x")

    assert [one.position for one in placed] == [Position(EntryId(1000, 3).version, n) for n in range(3)]
    assert [one.ended_us for one in placed] == [1_794_650_400_000_000, 1_000_000, 1_000_000]


def test_rows_of_bronze_say_the_same() -> None:
    entry = Entry(EntryId(1_794_650_400_000, 3), encode_scores(KNOWN, [("api", 1), ("game", 2)]))
    rows = scores_rows([entry], log_id="log", partition=Partition(Stream.SCORES, 2)).select(SCORES.column_names)

    assert rows.cast(arrow_schema(SCORES)).num_rows == 3
    found = rows.to_pydict()
    assert (found["kind"], found["source"]) == (["score", "score", "ban"], ["api", "game", "game"])
    assert (found["time_source"], found["reason"]) == (["client", "server", "server"], [None, None, "cheated"])
    assert [until and until.microsecond for until in found["until"]] == [None, None, 1]
    assert found["score"] == [2**62, -1, 0]
    assert found["log_index"] == [0, 1, 2]
    assert pa.types.is_timestamp(rows.schema.field("event_time").type)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda e: [2, *e[1:]], "1"),
        (lambda e: [e[0], "plays", *e[2:]], "plays"),
        (lambda e: [*e[:3], e[3] + b"\0", *e[4:]], "different lengths"),
        (lambda e: [*e[:3], b"\7\0\1", *e[4:]], "unknown kinds"),
        (lambda e: e[:5], "length"),
    ],
)
def test_another_version_or_broken_columns_are_refused_by_place(change, problem: str) -> None:  # type: ignore[no-untyped-def]  # a lambda
    whole = msgspec.msgpack.decode(encode_scores(KNOWN, [("s", 3)]))
    with pytest.raises(UnreadableEntryError, match=problem) as caught:
        decode_scores(msgspec.msgpack.encode(change(whole)), where="5-0 of scores:1")
    assert "5-0 of scores:1" in str(caught.value)
