"""The order of the bytes is the order of the board."""

import json
from itertools import pairwise
from pathlib import Path
from struct import error as StructError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.boards.sort_key import Mode, Place, member, place_of, player_of, sort_key

pytestmark = pytest.mark.fast

GOLDEN = Path(__file__).parents[2] / "golden" / "sort_keys_v1.json"
NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.sampled_from([0, 1, -1, 2**53, 2**53 + 1, -(2**62), 2**62, 2**63 - 1])
)
IDS = st.text(min_size=1, max_size=4)
ROWS = st.tuples(NUMBERS, NUMBERS, IDS)


@given(st.sampled_from(Mode), st.lists(ROWS, min_size=2, max_size=8, unique=True))
def test_members_sort_as_tuples_do(mode: Mode, rows: list[tuple[int, int, str]]) -> None:
    sign = 1 if mode is Mode.BEST_LOW else -1
    by_tuple = sorted(rows, key=lambda row: (sign * row[0], row[1], row[2].encode()))

    members = [member(sort_key(mode, score, reached), player) for score, reached, player in by_tuple]

    assert members == sorted(members)
    for one, other in pairwise(members):
        assert one < other
    assert [(*place_of(mode, one), player_of(one)) for one in members] == by_tuple


def test_neighbours_of_2_to_the_53_are_told_apart() -> None:
    high, low = (sort_key(Mode.BEST_HIGH, score, 0) for score in (9007199254740993, 9007199254740992))
    assert high < low
    assert place_of(Mode.BEST_HIGH, high) == Place(9007199254740993, 0)


def test_ids_that_begin_alike_are_in_the_order_of_their_bytes() -> None:
    key = sort_key(Mode.SUM, 5, 7)
    ids = ["a", "a\x01", "aa", "ab", "b", "ä", "夜", "🎵"]
    assert sorted(ids, key=lambda player: member(key, player)) == ids


def test_bytes_stay_as_they_are_for_ever() -> None:
    for row in json.loads(GOLDEN.read_text(encoding="utf-8")):
        key = sort_key(Mode(row["mode"]), row["score"], row["reached_us"])
        assert key.hex() == row["key"]
        assert place_of(Mode(row["mode"]), key) == (row["score"], row["reached_us"])


@pytest.mark.parametrize("score", [2**63, -(2**63) - 1])
def test_what_has_no_room_is_refused(score: int) -> None:
    with pytest.raises(StructError):
        sort_key(Mode.BEST_HIGH, score, 0)
