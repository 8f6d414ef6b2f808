"""`lakeboard publish`: what of a release becomes the view of the live charts, and when it must not."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from domain.batch_view import BatchView
from domain.policy import DEFAULT_POLICY
from domain.position import BronzePosition
from domain.tables import PLAYS
from domain.windows import DAY, HOUR, milliseconds
from ingest.arrow import arrow_schema
from ingest.lake_reader import LakeReader
from ingest.lake_writer import BronzeWriter
from ingest.read_batch_view import ReleaseBehindLogError, ViewLimits, batch_view, hand_over
from ingest.read_releases import NothingCountedError
from lakeboard.commands.publish import publish_command
from lakeboard.settings import Settings
from speed_layer.store.connection import Views, ViewsUnavailableError, connect
from speed_layer.store.views import ViewStore
from tests.lake_rows import WRITER
from tests.lakes import ModelLake, Play, at
from tests.views_server import ViewsServer, views_server

GRACE = DEFAULT_POLICY.grace
WIDE = ViewLimits(items=1000, regions=100)


def lake_of(
    root: Path,
    plays: Sequence[Play],
    frontier: datetime,
    *,
    log: str | None = None,
    read_to: datetime | None = None,
    offsets: Mapping[int, int] | None = None,
) -> Path:
    """A lake with one release; it has read a log of two partitions when one is named."""
    model = ModelLake()
    model.release(plays, frontier=frontier)
    if log is not None:
        bronze = BronzeWriter(root)
        bronze.create()
        moment = milliseconds(read_to or frontier + GRACE)
        marks = {f"log_in_use/{log}": 1, f"read_to/{log}/0": moment + 5, f"read_to/{log}/1": moment}
        bronze.append_from(PLAYS, arrow_schema(PLAYS).empty_table(), after={}, transactions=marks)
        writers = {f"lake_writer/{log}/{number}": offset for number, offset in (offsets or {}).items()}
        position = BronzePosition(0, len(plays), {WRITER: 1, **writers})
        model.releases[-1] = replace(model.releases[-1], position=position)
    return model.write(root)


def view_of(lake: Path, limits: ViewLimits = WIDE, *, log_id: str | None = None) -> BatchView:
    with LakeReader(lake) as reader:
        of = hand_over(reader, policy=DEFAULT_POLICY, log_id=log_id)
        return batch_view(reader, of, limits=limits)


def some_plays(random: Random) -> list[Play]:
    items = ["\uff5e", "\U0001f3b5", "夜", *(f"t{n}" for n in range(9))]
    return [
        Play(
            f"e{n}",
            items[min(random.randrange(12), random.randrange(12))],
            at(0) + timedelta(minutes=random.randrange(60 * 48)),
            random.choice(["ZZ", "IN", "IN", "IN", "DE", "DE", "US-CA"]),
            random.choice([1, 1, 2, 300, 70_000]),
        )
        for n in range(400)
    ]


def counted(plays: Sequence[Play], frontier: datetime) -> dict[str, dict[str, Counter[int]]]:
    """Region -> item -> hour of the view -> plays."""
    found: dict[str, dict[str, Counter[int]]] = {}
    for play in plays:
        if frontier - DAY <= play.at < frontier:
            for region in ("*", play.region):
                hours = found.setdefault(region, {}).setdefault(play.item_id, Counter())
                hours[(play.at - frontier + DAY) // HOUR] += play.count
    return found


@pytest.mark.lake
def test_a_view_says_what_batch_left_out_as_copies(tmp_path: Path) -> None:
    plays = [
        Play("a", "x", at(1), "IN"),
        Play("a", "x", at(1), "IN"),
        Play("a", "y", at(1), "IN"),
        Play("b", "x", at(2), "IN"),
    ]
    old = [Play("old", "x", at(3), "IN"), Play("old", "x", at(3), "IN")]

    today = view_of(lake_of(tmp_path / "today", plays, at(7)))
    tomorrow = view_of(lake_of(tmp_path / "tomorrow", [*plays, *old], at(2, day=15)))

    assert today.copies == {"duplicate": 1, "conflict": 1}
    assert tomorrow.copies == {"duplicate": 1}  # of the day before the frontier alone
    assert view_of(lake_of(tmp_path / "none", plays[-1:], at(7))).copies == {}


@pytest.mark.lake
def test_a_view_has_the_best_items_hour_by_hour_and_what_the_next_one_has(tmp_path: Path) -> None:
    plays, frontier = some_plays(Random(3)), at(7, day=15)
    lake = lake_of(tmp_path, plays, frontier)
    truth = counted(plays, frontier)

    for limits in (WIDE, ViewLimits(items=4, regions=100)):
        view = view_of(lake, limits)
        assert (view.release, view.frontier, view.log_id, view.others) == (1, frontier, None, 0)
        assert view.regions.keys() == truth.keys()
        for name, region in view.regions.items():
            mine = truth[name]
            order = sorted(mine, key=lambda item: (-mine[item].total(), item.encode()))
            assert list(region.item_ids) == order[: limits.items]
            assert region.hourly.tolist() == [[mine[item][hour] for hour in range(24)] for item in region.item_ids]
            left = order[limits.items :]
            assert region.residual == (mine[left[0]].total() if left else 0)
            assert region.totals.tolist() == [sum(of[hour] for of in mine.values()) for hour in range(24)]


@pytest.mark.lake
def test_hours_from_the_first_of_the_day_to_the_last_before_the_frontier_are_in_it(tmp_path: Path) -> None:
    moments = [at(7) - timedelta(microseconds=1), at(7), at(7, day=15) - timedelta(microseconds=1), at(7, day=15)]
    plays = [Play(f"e{n}", f"t{n}", moment) for n, moment in enumerate(moments)]

    view = view_of(lake_of(tmp_path, plays, at(7, day=15)))

    assert list(view.regions["*"].item_ids) == ["t1", "t2"]
    assert view.regions["*"].hourly[:, [0, 23]].tolist() == [[1, 0], [0, 1]]


@pytest.mark.lake
def test_of_too_many_regions_the_most_played_and_the_unknown_one_are_in_it(tmp_path: Path) -> None:
    plays = [Play(f"{region}{n}", "t", at(1), region) for region, times in
             (("AA", 3), ("BB", 5), ("CC", 5), ("DD", 4), ("ZZ", 1)) for n in range(times)]  # fmt: skip
    view = view_of(lake_of(tmp_path, plays, at(2)), ViewLimits(items=10, regions=3))

    assert sorted(view.regions) == ["*", "BB", "CC", "ZZ"]
    assert view.others == 4
    absent = view.since("DD", at(0))
    assert (absent.residual, absent.total, list(absent.item_ids)) == (4, 4, [])
    assert view.since("DD", at(2)).residual == 0  # all that was is before the day's start
    assert view.regions["*"].total == 18


@pytest.mark.lake
def test_offsets_are_those_of_the_log_and_not_of_imports(tmp_path: Path) -> None:
    view = view_of(lake_of(tmp_path, [], at(2), log="L1", offsets={1: 2**60}), log_id="L1")

    assert view.offsets == {"L1/1": 2**60}
    assert (view.offset("L1", 0), view.offset("L1", 1)) == (-1, 2**60)
    assert view.goes_with("L1")
    assert not view.goes_with("L2")
    assert view.regions == {}


@pytest.mark.lake
def test_a_release_that_has_not_read_the_log_is_refused(tmp_path: Path) -> None:
    never = lake_of(tmp_path / "a", [Play("e", "t", at(1))], at(2))
    with pytest.raises(ReleaseBehindLogError, match="it has read no log, the one in use is L2"):
        view_of(never, log_id="L2")
    another = lake_of(tmp_path / "b", [], at(2), log="L1")
    with pytest.raises(ReleaseBehindLogError, match="it has read log L1, the one in use is L2"):
        view_of(another, log_id="L2")
    early = lake_of(tmp_path / "c", [], at(2), log="L1", read_to=at(2) + GRACE - timedelta(milliseconds=1))
    with pytest.raises(ReleaseBehindLogError, match="1 partitions of log L1 were read up to 2026-11-14 02:09:59"):
        view_of(early, log_id="L1")


# --- the command ---


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ViewsServer]:
    with views_server(tmp_path_factory.mktemp("views")) as found:
        yield found


@pytest.fixture
def views(server: ViewsServer) -> Iterator[Views]:
    with connect(server.address) as found:
        found.client.flushall()
        yield found


@pytest.fixture
def settings(tmp_path: Path, server: ViewsServer, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(Settings, "clock", lambda _: at(3, 30))
    return Settings(home=tmp_path, views_url=server.address)


def published(settings: Settings, *arguments: str) -> str:
    result = CliRunner().invoke(publish_command, arguments, obj=settings)
    if result.exception is not None:
        raise result.exception
    return result.stdout


@pytest.mark.redis
def test_publishing_puts_the_newest_release_in_force_once(settings: Settings, views: Views) -> None:
    lake_of(settings.lake_root, [Play("e", "t", at(1), "IN", 7)], at(3))

    said = json.loads(published(settings, "--json"))

    store = ViewStore(views)
    assert said == {
        "version": store.current(),
        "release": 1,
        "frontier": "2026-11-14T03:00:00Z",
        "new": True,
        "regions": 2,
        "items": 1,
        "behind_seconds": 1800,
    }
    view = store.load(said["version"])
    assert view is not None
    assert view.regions["IN"].plays.tolist() == [7]
    again = json.loads(published(settings, "--json"))
    assert again == {**said, "new": False}
    assert (
        published(settings)
        == "Nothing new: the live charts use release 1 already, certified up to 2026-11-14 03:00 UTC.\n"
    )


@pytest.mark.redis
def test_a_frontier_that_no_live_window_reaches_is_said(
    settings: Settings, views: Views, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake_of(settings.lake_root, [Play("e", "t", at(1))], at(3))
    monkeypatch.setattr(Settings, "clock", lambda _: at(4, day=15))
    assert "hours ago" not in published(settings)
    views.client.flushall()

    monkeypatch.setattr(Settings, "clock", lambda _: at(5, day=15))
    assert "That is 26 hours ago, which no live window reaches: run `lakeboard recount`" in published(settings)


@pytest.mark.redis
def test_without_a_release_or_a_server_it_says_what_to_do(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(NothingCountedError, match="run `lakeboard recount`"):
        published(settings)
    with pytest.raises(ViewsUnavailableError, match="start it with `lakeboard up`"):
        published(Settings(home=tmp_path / "elsewhere"))
