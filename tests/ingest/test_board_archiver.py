"""Boards of periods that ended are archived: when their time has come, once as they are, again when they changed."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.board_tables import ARCHIVES
from domain.boards.archives import Archive, ArchivedPlace, is_settled
from domain.boards.definitions import LIVE_WINDOW, Boards, Game
from domain.boards.sort_key import Mode
from domain.table import Table
from domain.windows import EPOCH
from ingest import board_archiver
from ingest.board_archiver import ArchiveRequest, archive
from ingest.read_archives import archived_places, archives
from ingest.read_files import LakeFiles
from tests.certified_lake import CertifiedLake

DAILY = ("chess", "daily:2026-11-14")
END = datetime(2026, 11, 15, tzinfo=UTC)
GRACE = timedelta(minutes=10)
AT = END - timedelta(hours=3)
BOARDS = Boards({"chess": Game(name="chess", archive_size=2), "golf": Game(name="golf", mode=Mode.BEST_LOW)})
ANN, BOB, CID = ("ann", 9, AT), ("bob", 7, AT), ("cid", 5, AT + timedelta(microseconds=1))
NAME = "chess|daily:2026-11-14"


@pytest.fixture
def lake(tmp_path: Path) -> CertifiedLake:
    return CertifiedLake(tmp_path / "lake")


def archived(lake: CertifiedLake, boards: Boards = BOARDS) -> Sequence[Archive]:
    return archive(ArchiveRequest(lake_root=lake.root, boards=boards, clock=lambda: END, code_version="1"))


def places(lake: CertifiedLake, name: str = NAME) -> Sequence[ArchivedPlace]:
    with LakeFiles(lake.root) as files:
        return archived_places(files, archives(lake.root)[name])


def place(player: tuple[str, int, datetime]) -> ArchivedPlace:
    return ArchivedPlace(player[0], player[1], (player[2] - EPOCH) // timedelta(microseconds=1))


def test_a_board_is_archived_when_the_lake_has_all_scores_up_to_the_end_of_its_grace(lake: CertifiedLake) -> None:
    players = {DAILY: [ANN, BOB, CID], ("chess", "all_time"): [ANN], ("golf", "weekly:2026-W46"): [ANN]}
    lake.certify(players)
    assert archived(lake) == []  # nothing says how far the log was read
    for moment in (END, END + GRACE - timedelta(milliseconds=1)):
        lake.read_to(moment)
        lake.certify(players)
        assert archived(lake) == []
    lake.read_to(END + GRACE)
    assert archived(lake) == []  # what is certified is of before
    number = lake.certify(players)
    (made,) = archived(lake)
    assert (made.name, made.revision, made.rebuild, made.players, made.places) == (NAME, 1, number, 3, 2)
    assert (made.archived_at, made.counted_to) == (END, END + GRACE)
    assert places(lake) == [place(ANN), place(BOB)]
    assert archives(lake.root) == {NAME: made}


def test_it_is_archived_once_as_it_is_and_once_more_when_no_score_can_come_live(lake: CertifiedLake) -> None:
    for moment in (END + GRACE, END + GRACE, END + LIVE_WINDOW - timedelta(milliseconds=1)):
        lake.read_to(moment)
        lake.certify({DAILY: [ANN]})
        archived(lake)
        assert archived(lake) == []
    (first,) = archives(lake.root).values()
    assert (first.revision, first.rebuild, is_settled(first, BOARDS)) == (1, 1, False)
    lake.read_to(END + LIVE_WINDOW)
    lake.certify({DAILY: [ANN]})
    (last,) = archived(lake)
    assert last == replace(first, rebuild=4, counted_to=END + LIVE_WINDOW)
    assert is_settled(last, BOARDS)
    assert places(lake) == [place(ANN)]
    lake.read_to(END + 2 * LIVE_WINDOW)
    lake.certify({DAILY: [ANN]})
    assert archived(lake) == []


def test_what_changed_later_is_another_revision_and_the_one_before_stays(lake: CertifiedLake) -> None:
    lake.read_to(END + 2 * LIVE_WINDOW)
    for players in ([ANN, BOB], [BOB, CID], []):
        lake.certify({DAILY: players})
        (made,) = archived(lake)
        assert places(lake) == [place(player) for player in players]
    assert (made.revision, made.players) == (3, 0)
    lake.certify({DAILY: [CID]})
    archived(lake)
    lake.certify({})  # a rebuild says nothing of a board that nobody is on any more
    (made,) = archived(lake)
    assert (made.revision, made.players, made.places) == (5, 0, 0)
    with LakeFiles(lake.root) as files:
        assert archived_places(files, replace(made, revision=2)) == [place(BOB), place(CID)]


@pytest.mark.parametrize("table", ARCHIVES)
def test_killed_before_any_write_nothing_is_archived_and_the_next_run_does_it_once(
    lake: CertifiedLake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.read_to(END + LIVE_WINDOW)
    lake.certify({DAILY: [ANN, BOB]})
    write = board_archiver._append

    def killed(lake_root: Path, wanted: Table, *rest: object) -> None:
        if wanted is table:
            raise KeyboardInterrupt
        write(lake_root, wanted, *rest)  # type: ignore[arg-type]  # as they came

    with monkeypatch.context() as patched:
        patched.setattr(board_archiver, "_append", killed)
        with pytest.raises(KeyboardInterrupt):
            archived(lake)
    assert archives(lake.root) == {}
    lake.certify({DAILY: [ANN, CID]})
    (made,) = archived(lake)
    assert places(lake) == [place(ANN), place(CID)]
    assert archives(lake.root) == {NAME: made}


def test_two_at_once_archive_it_once(lake: CertifiedLake) -> None:
    lake.read_to(END + LIVE_WINDOW)
    lake.certify({DAILY: [ANN], ("golf", "daily:2026-11-14"): [BOB]})
    with ThreadPoolExecutor(4) as threads:
        made = [one for some in threads.map(lambda _: archived(lake), range(4)) for one in some]
    assert sorted(one.name for one in made) == [NAME, "golf|daily:2026-11-14"]
    assert places(lake) == [place(ANN)]


def test_games_and_seasons_that_are_defined_no_more_keep_what_they_have(lake: CertifiedLake) -> None:
    lake.read_to(END + LIVE_WINDOW)
    lake.certify({DAILY: [ANN]})
    archived(lake)
    lake.certify({("chess", "season:spring"): [ANN]})
    assert archived(lake, Boards({})) == []
    assert places(lake) == [place(ANN)]
