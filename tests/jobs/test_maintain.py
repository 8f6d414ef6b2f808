"""Maintenance makes files fewer and changes nothing that anybody reads."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from domain.board_tables import BOARD_ARCHIVE_PLACES, BOARD_ARCHIVES, BOARD_CERTIFICATES, BOARD_ENTRIES
from domain.boards.definitions import ONE_GAME
from domain.tables import PLAYS
from ingest.board_archiver import ArchiveRequest, archive
from ingest.delta_log import commit_info, newest_version
from ingest.lake_reader import newest_release
from ingest.read_archives import archived_places, archives
from ingest.read_certificates import certificates
from ingest.read_files import LakeFiles
from jobs import maintain
from jobs.recount import nothing_new
from tests.certified_lake import CertifiedLake
from tests.counted_lakes import received, recount, request_of, tables
from tests.lakes import ModelLake, Play, at

pytestmark = pytest.mark.spark

NOW = at(12, day=25)
FRONTIER = at(11, day=25)


def test_maintenance_keeps_every_number_and_rolls_back_a_killed_recount_first(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake, killed = tmp_path / "lake", tmp_path / "killed"
    model = ModelLake()
    for seq, plays in enumerate(([Play("a1", "a", at(1))], [Play("a2", "a", at(1)), Play("a1", "b", at(2))]), 1):
        model.release(plays, frontier=FRONTIER)
        received(lake, model.rows[PLAYS.name][-len(plays) :], seq=seq)
    recount(spark, lake, at(12, day=24))
    before = tables(lake)
    model.release([Play("a3", "a", at(1))], frontier=FRONTIER)
    received(lake, model.rows[PLAYS.name][-1:], seq=3)

    def copy_lake(step: str) -> None:
        if step == "commit gold/charts":
            shutil.copytree(lake, killed)

    recount(spark, lake, NOW, on_step=copy_lake)
    done = {each.table: each for each in maintain.run(spark, killed, clock=lambda: NOW)}

    newest = newest_release(killed)
    assert newest is not None
    assert (newest.release, newest.cause, newest.position.events) == (2, "maintenance", 3)
    assert tables(killed) == before
    assert (done[PLAYS.name].files_before, done[PLAYS.name].files_after) == (3, 1)
    assert nothing_new(request_of(killed, NOW)) is None
    report = recount(spark, killed, NOW)
    assert (report.release.release, report.new_events) == (3, 1)
    counted = {row[1]: row[8] for row in tables(killed)["gold/hourly_counts"]}
    assert counted == {1: 3, 2: 0}
    assert len(model.releases) == 3


def test_boards_are_maintained_and_say_what_they_said(spark: SparkSession, tmp_path: Path) -> None:
    lake = CertifiedLake(tmp_path / "lake")
    day, ended = ("default", "daily:2026-11-14"), at(0, day=16)
    for players in ([("a", 3, at(1))], [("a", 3, at(1)), ("b", 2, at(1))]):
        lake.read_to(ended)
        lake.certify({day: players, ("default", "all_time"): players}, now=NOW)
        archive(ArchiveRequest(lake_root=lake.root, boards=ONE_GAME, clock=lambda: NOW, code_version="1"))
    kept, said = archives(lake.root), certificates(lake.root)

    done = {each.table: each for each in maintain.run(spark, lake.root, clock=lambda: NOW)}

    assert (archives(lake.root), certificates(lake.root)) == (kept, said)
    for table in (BOARD_ARCHIVES, BOARD_ARCHIVE_PLACES, BOARD_CERTIFICATES):
        assert (done[table.name].files_before, done[table.name].files_after) == (2, 1)
    with LakeFiles(lake.root) as files:
        assert [one.player_id for one in archived_places(files, kept["default|daily:2026-11-14"])] == ["a", "b"]
    newest = {action for version in vacuums(lake.root / BOARD_ENTRIES.name) for action in version}
    assert "VACUUM END" in newest


def vacuums(table: Path) -> list[set[str]]:
    """What the newest commits of a table did."""
    return [{commit_info(table, version).get("operation", "")} for version in range(newest_version(table) + 1)]
