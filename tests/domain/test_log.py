import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.log import (
    BEGINNING,
    EntryId,
    LogFullError,
    LogLostEndError,
    LogReplacedError,
    LogUnavailableError,
    NoVersionError,
    Partition,
    Stream,
    TrimmedError,
    UnknownLogFormatError,
    UnsafeLogServerError,
)

pytestmark = pytest.mark.fast

entries = st.builds(EntryId, st.integers(0, 2**42), st.integers(0, 2**20 - 1))


@given(entries, entries)
def test_versions_are_in_the_order_of_their_entries_and_give_them_back(one: EntryId, other: EntryId) -> None:
    assert (one.version < other.version) == (one < other)
    assert EntryId.of_version(one.version) == one
    assert EntryId.parse(str(one)) == EntryId.parse(str(one).encode()) == one
    assert 0 <= one.version < 2**63


def test_before_the_first_transaction_a_reader_stands_at_the_beginning() -> None:
    assert EntryId.of_version(-1) == BEGINNING


def test_a_counter_that_the_lake_cannot_note_is_refused_and_not_folded_into_the_next_millisecond() -> None:
    with pytest.raises(NoVersionError, match="entry 7-1048576 has a counter of 1048576 or more"):
        assert EntryId(7, 2**20).version != EntryId(8, 0).version


def test_entries_are_compared_as_numbers() -> None:
    assert EntryId(9, 0) < EntryId(10, 0)
    assert EntryId(1, 9) < EntryId(1, 10)
    assert str(Partition(Stream.SCORES, 3)) == "scores:3"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("rediss://user:s3cret@log.example:6380/0?password=s3cret", "at rediss://log.example:6380/0 "),
        ("redis://:s3cr@t@log.example:6379", "at redis://log.example:6379 "),
        ("unix:///run/lake@board/log.sock", "at unix:///run/lake@board/log.sock "),
    ],
)
def test_no_message_shows_the_password_of_the_server(address: str, shown: str) -> None:
    for error in (
        LogUnavailableError(address, "refused"),
        UnsafeLogServerError(address, ["appendonly is no"]),
        UnknownLogFormatError(address, "2"),
    ):
        assert shown in str(error)
        assert "s3cr" not in f"{error} {error!r} {error.args}"


@pytest.mark.parametrize(
    "error",
    [
        LogUnavailableError("unix:///x", "refused"),
        LogFullError("900 of 1000 MiB"),
        LogReplacedError("a", "b"),
        LogLostEndError("a", "plays:0", "7-0"),
        TrimmedError("plays:0", "1-0", "2-0"),
        UnsafeLogServerError("unix:///x", ["a", "b"]),
        UnknownLogFormatError("unix:///x", "2"),
        NoVersionError("7-1048576"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_the_way_between_processes(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  our own

    assert (type(again), str(again)) == (type(error), str(error))
