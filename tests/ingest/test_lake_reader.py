import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.answers import FINAL, PROVISIONAL
from domain.policy import Policy
from domain.questions import parse_as_of
from domain.releases import UnknownReleaseError
from domain.rules import Rules
from domain.tables import CHARTS, HOURLY_COUNTS, PLAYS, RELEASES
from domain.windows import HOUR, Granularity, Window
from ingest.lake_reader import LakeReader, newest_release
from ingest.read_files import LakeUnreadableError, PinnedTable
from ingest.read_releases import NoReleaseThenError, NothingCountedError
from tests.lakes import ModelLake, Play, at, replace_table, write_table

pytestmark = pytest.mark.lake

EXCLUDE_ALL = Rules.parse('[[minimum_duration]]\nduration_ms = 1\nmissing = "exclude"')
HOUR_1 = Window.starting(at(1), Granularity.HOUR)
DAY_14 = Window.starting(at(0), Granularity.DAY)
ANY_DAY = Window(at(0), at(0, day=16))


def history() -> ModelLake:
    """Three releases: a chart of 3 stored rows that ties at the cut, then a late event, then a new day."""
    model = ModelLake(policy=Policy(chart_size=3))
    plays = [Play(f"{item}{n}", item, at(1), "IN") for item, times in {"a": 3, "b": 2, "c": 1, "d": 1}.items()
             for n in range(times)]  # fmt: skip
    model.release([*plays, Play("a0", "a", at(1), "IN"), Play("z1", "é", at(5))], frontier=at(2))
    model.release([Play("late", "d", at(1), "IN")], frontier=at(0, day=15))
    model.release([Play("late2", "d", at(2), "IN"), Play("new", "a", at(3, day=15), "SE")], frontier=at(2, day=15))
    return model


@pytest.fixture(scope="module")
def model() -> ModelLake:
    return history()


@pytest.fixture(scope="module")
def lake(model: ModelLake, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model.write(tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def reader(lake: Path) -> Iterator[LakeReader]:
    """One reader for all tests that only read: to make a DuckDB takes longer than most of them."""
    with LakeReader(lake) as reader:
        yield reader


def hour_chart(reader: LakeReader, *, n: int = 3, region: str = "IN", release: int | None = None) -> dict[str, object]:
    asked = None if release is None else reader.releases.numbered(release)
    return reader.chart(Granularity.HOUR, HOUR_1, region=region, n=n, release=asked).body()


def listed(body: dict[str, object]) -> list[tuple[int, str, int]]:
    entries = body["entries"]
    assert isinstance(entries, list)
    return [(entry["rank"], entry["item_id"], entry["count"]) for entry in entries]


# --- charts ---


def test_a_chart_lists_counts_in_order_with_ties_by_item_bytes(reader: LakeReader) -> None:
    body = hour_chart(reader)

    assert listed(body) == [(1, "a", 3), (2, "b", 2), (3, "d", 2)]
    assert body["total"] == 8
    assert body["release"] == 3
    assert body["status"] == FINAL
    assert body["exact"] is True


def test_a_chart_as_of_an_older_release_is_what_that_release_said(reader: LakeReader) -> None:
    body = hour_chart(reader, release=1)

    assert listed(body) == [(1, "a", 3), (2, "b", 2), (3, "c", 1)]
    assert (body["total"], body["release"], body["as_of"]) == (7, 1, "2026-11-20T13:30:00Z")


def test_at_the_stored_cut_the_stored_flag_and_the_order_bound_what_is_missed(reader: LakeReader) -> None:
    tied, untied = hour_chart(reader, release=1), hour_chart(reader)

    assert (tied["tie_at_cut"], tied["missed_max"]) == (True, 1)
    assert (untied["tie_at_cut"], untied["missed_max"]) == (False, 1)


def test_above_the_stored_cut_the_next_row_is_what_is_missed(reader: LakeReader) -> None:
    assert (hour_chart(reader, n=1)["missed_max"], hour_chart(reader, n=1)["tie_at_cut"]) == (2, False)
    assert (hour_chart(reader, n=2)["missed_max"], hour_chart(reader, n=2)["tie_at_cut"]) == (2, True)


def test_a_chart_that_lists_every_item_misses_none(reader: LakeReader) -> None:
    day = Window.starting(at(0, day=15), Granularity.DAY)

    body = reader.chart(Granularity.DAY, day, region="*", n=10).body()

    assert (body["missed_max"], body["tie_at_cut"], body["status"]) == (0, False, PROVISIONAL)


@pytest.mark.parametrize(("window", "region"), [(HOUR_1, "XX"), (Window(at(1, day=20), at(2, day=20)), "*")])
def test_no_events_are_an_empty_chart(reader: LakeReader, window: Window, region: str) -> None:
    answer = reader.chart(Granularity.HOUR, window, region=region, n=10)

    assert (answer.rows, answer.total, answer.missed_max, answer.tie_at_cut) == ([], 0, 0, False)


def test_a_chart_that_became_empty_is_empty_now_and_full_before(tmp_path: Path) -> None:
    model = ModelLake()
    model.release([Play("e", "a", at(1))], frontier=at(2))
    model.rules = EXCLUDE_ALL
    model.release([], frontier=at(2))

    with LakeReader(model.write(tmp_path)) as reader:
        assert listed(hour_chart(reader, region="*")) == []
        assert listed(hour_chart(reader, region="*", release=1)) == [(1, "a", 1)]
        assert reader.newest_window(Granularity.HOUR) is None
        first = reader.releases.numbered(1)
        assert reader.newest_window(Granularity.HOUR, release=first) == HOUR_1


def test_the_newest_window_is_the_latest_with_a_chart(reader: LakeReader) -> None:
    assert reader.newest_window(Granularity.HOUR) == Window(at(3, day=15), at(4, day=15))
    assert reader.newest_window(Granularity.DAY, release=reader.releases.numbered(2)) == DAY_14


def test_a_region_is_known_once_an_event_of_it_was_received(reader: LakeReader) -> None:
    assert [reader.region_is_known(region) for region in ("IN", "ZZ", "*", "XX")] == [True, True, True, False]


# --- counts ---


def test_a_count_is_the_sum_of_its_hours_by_measure(reader: LakeReader) -> None:
    body = reader.count("a", DAY_14, region="IN").body()

    measures = {name: body[name] for name in ("received", "duplicates", "conflicts", "excluded", "counted")}
    assert measures == {"received": 4, "duplicates": 1, "conflicts": 0, "excluded": 0, "counted": 3}
    assert (body["status"], body["hours_not_certified"], body["release"]) == (FINAL, 0, 3)


def test_a_count_of_whole_days_equals_the_count_of_its_hours(reader: LakeReader) -> None:
    span = Window(at(0), at(6, day=15))
    by_hours = sum(reader.count("d", Window(h, h + HOUR), region="*").numbers["counted"] for h in span.hours())

    assert reader.count("d", span, region="*").numbers["counted"] == by_hours == 3


def test_hours_that_a_release_had_not_certified_count_nothing_and_are_counted(reader: LakeReader) -> None:
    first, newest = reader.releases.numbered(1), reader.releases.newest()

    then, now = (reader.count("é", DAY_14, region="*", release=release) for release in (first, newest))

    assert (then.numbers["counted"], then.hours_not_certified, then.status) == (0, 22, PROVISIONAL)
    assert (now.numbers["counted"], now.hours_not_certified, now.status) == (1, 0, FINAL)


def test_hours_beyond_the_frontier_without_any_row_are_not_certified(reader: LakeReader) -> None:
    assert reader.count("a", Window(at(0, day=15), at(0, day=17)), region="*").hours_not_certified == 46


def test_an_item_that_never_played_counts_zero(reader: LakeReader) -> None:
    assert set(reader.count("nobody", DAY_14, region="*").numbers.values()) == {0}


# --- what changed ---


def test_changes_since_a_release_are_its_restated_numbers(reader: LakeReader) -> None:
    changes = reader.changes(since=1)

    counted = [c for c in changes if c.measure == "counted"]
    assert [(c.release, c.window_length, c.item_id, c.old, c.new) for c in counted] == [
        (2, "1h", "d", 1, 2),
        (3, "1d", "d", 2, 3),
        (3, "1h", "d", 0, 1),
    ]
    assert len(reader.changes(since=1, most=2)) == 2
    assert reader.changes(since=1, until=2, item_id="d", region="IN") == [c for c in changes if c.release == 2]
    assert reader.changes(since=1, region="SE") == []


# --- releases ---


def test_releases_are_found_by_number_moment_and_date(reader: LakeReader) -> None:
    asked = ("2", "2026-11-20T14:30:00Z", "2026-11-20T14:29:59Z", "2026-11-20", "2030-01-01")

    assert [reader.releases.as_of(parse_as_of(text)).release for text in asked] == [2, 2, 1, 3, 3]


def test_a_release_that_is_not_there_is_named(reader: LakeReader) -> None:
    with pytest.raises(UnknownReleaseError, match=r"no release 4: .* from 1 to 3"):
        reader.releases.numbered(4)
    with pytest.raises(NoReleaseThenError, match="release 1 was the first, made at 2026-11-20T13:30"):
        reader.releases.as_of(parse_as_of("2026-11-19"))


def test_looking_back_opens_no_more_than_the_files_that_can_hold_the_answer(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    with LakeReader(lake) as reader:
        scan = PinnedTable.scan

        def noted(table: PinnedTable) -> str:
            opened.append(len(table.files))
            return scan(table)

        monkeypatch.setattr(PinnedTable, "scan", noted)
        reader.releases.numbered(2)

    assert opened == [1, 1]


def test_a_lake_without_release_says_what_to_do(tmp_path: Path) -> None:
    write_table(tmp_path, RELEASES, [])

    assert newest_release(tmp_path) is None
    assert newest_release(tmp_path / "nowhere") is None
    with LakeReader(tmp_path) as reader, pytest.raises(NothingCountedError, match="lakeboard import"):
        reader.count("a", DAY_14, region="*")


# --- only what a release names ---


def test_versions_that_no_release_names_are_not_seen(tmp_path: Path) -> None:
    lake = history().write(tmp_path / "lake")
    with LakeReader(lake) as reader:
        before = (
            hour_chart(reader),
            reader.count("a", ANY_DAY, region="*").body(),
            reader.newest_window(Granularity.DAY),
        )
    for table in (CHARTS, HOURLY_COUNTS, PLAYS):
        replace_table(lake, table, [])

    with LakeReader(lake) as reader:
        after = (
            hour_chart(reader),
            reader.count("a", ANY_DAY, region="*").body(),
            reader.newest_window(Granularity.DAY),
        )
        plays = reader.table(PLAYS).rows

    assert after == before
    assert plays == 12


@pytest.mark.parametrize("folder", ["region=eu", "it's", "a*b[c]?", "é {x}"])
def test_the_name_of_the_lakes_folder_does_not_matter(lake: Path, tmp_path: Path, folder: str) -> None:
    shutil.copytree(lake, tmp_path / folder)

    with LakeReader(tmp_path / folder) as reader:
        assert listed(hour_chart(reader)) == [(1, "a", 3), (2, "b", 2), (3, "d", 2)]


def test_a_missing_file_or_version_is_named_with_what_to_do(lake: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(lake, tmp_path / "broken"))
    for file in (broken / CHARTS.name).rglob("*.parquet"):
        file.unlink()
    shutil.rmtree(broken / HOURLY_COUNTS.name / "_delta_log")

    with LakeReader(broken) as reader:
        with pytest.raises(LakeUnreadableError, match=r"cannot be read .* docs/when-something-fails\.md"):
            hour_chart(reader)
        with pytest.raises(LakeUnreadableError, match="gold/hourly_counts at version 1 cannot be read"):
            reader.count("a", ANY_DAY, region="*")
