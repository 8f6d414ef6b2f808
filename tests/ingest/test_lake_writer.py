"""A commit that loses against another writer: tried again, in the table once, or not at all.

Our own processes hold the table's lock, so a rival here is a program that knows nothing of it.
"""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from domain.table import Table
from domain.tables import PLAYS
from ingest.arrow import arrow_schema
from ingest.delta_log import app_transactions, row_count
from ingest.lake_writer import BronzeWriter, NotCommittedError
from tests.ingest.importing import plays
from tests.lake_rows import Play, at, received

pytestmark = pytest.mark.lake

OURS = "lake_writer/import/ours/0"
RIVAL = "another program"


class RacedWriter(BronzeWriter):
    """Lets a rival commit between the moment the table is opened and our commit."""

    def __init__(self, lake_root: Path, rival: Callable[[], None], *, races: int) -> None:
        self.pauses: list[float] = []
        super().__init__(lake_root, pause=self.pauses.append)
        self._rival = rival
        self._races = races

    def _open(self, table: Table) -> DeltaTable:
        handle = super()._open(table)
        if self._races > 0:
            self._races -= 1
            self._rival()
        return handle


def rows_of(writer: str, *event_ids: str) -> pa.Table:
    rows = [received(Play(event_id, "a", at(1)), at(2), 1, index) for index, event_id in enumerate(event_ids)]
    return pa.Table.from_pylist([{**row, "writer": writer} for row in rows], schema=arrow_schema(PLAYS))


def commit_of(folder: Path, writer: str, seq: int, rows: pa.Table) -> Callable[[], None]:
    """A commit of another program: no lock, no look at what is there."""

    def commit() -> None:
        mark = CommitProperties(app_transactions=[Transaction(writer, seq)])
        write_deltalake(folder / PLAYS.name, rows, mode="append", commit_properties=mark)

    return commit


def event_ids(folder: Path) -> list[str]:
    return sorted(play["event_id"] for play in plays(folder))


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    BronzeWriter(tmp_path).create()
    return tmp_path


def test_a_commit_that_lost_is_tried_again_and_both_are_there_once(lake: Path) -> None:
    rival = commit_of(lake, RIVAL, 7, rows_of(RIVAL, "r"))
    writer = RacedWriter(lake, rival, races=2)

    assert writer.append(PLAYS, rows_of(OURS, "o1", "o2"), writer=OURS, seq=2) == 2

    assert event_ids(lake) == ["o1", "o2", "r", "r"]  # the rival committed in each of two races
    table = DeltaTable(lake / PLAYS.name)
    assert app_transactions(lake / PLAYS.name, table.version()) == {OURS: 2, RIVAL: 7}
    assert len(writer.pauses) == 2
    assert all(0 <= pause <= 0.1 for pause in writer.pauses)
    assert writer.append(PLAYS, rows_of(OURS, "o1", "o2"), writer=OURS, seq=2) == 0


def test_a_rival_that_committed_our_own_transaction_leaves_nothing_to_do(lake: Path) -> None:
    ours = rows_of(OURS, "o1", "o2")
    writer = RacedWriter(lake, commit_of(lake, OURS, 2, ours), races=1)

    assert writer.append(PLAYS, ours, writer=OURS, seq=2) == 0

    assert event_ids(lake) == ["o1", "o2"]


def test_against_endless_rivals_nothing_is_written_and_it_is_said(lake: Path) -> None:
    rival = commit_of(lake, RIVAL, 7, rows_of(RIVAL, "r"))
    writer = RacedWriter(lake, rival, races=1000)

    with pytest.raises(NotCommittedError, match=r"bronze/plays: transaction 2 .* 10 tries; nothing of it was written"):
        writer.append(PLAYS, rows_of(OURS, "o"), writer=OURS, seq=2)

    table = DeltaTable(lake / PLAYS.name)
    assert event_ids(lake) == ["r"] * 10
    assert row_count(table) == 10
    assert table.transaction_version(OURS) is None
    assert len(writer.pauses) == 10
