"""Random histories of a shard against all events counted one by one: entries, ranks, neighbours, pages."""

import subprocess
from collections.abc import Iterator
from random import Random

import pytest

from domain.boards.definitions import Boards, Game
from domain.boards.events import NOT_SAID, EventKind
from domain.boards.sort_key import KEY_BYTES, SCORE_BYTES, Mode, member
from domain.periods import PeriodKind
from speed_layer.store.boards.reader import BoardsNotReadyError, BoardsReader, Look
from speed_layer.store.boards.writer import WHOLE, Applied, BoardsMovedError, BoardWriter
from speed_layer.store.connection import Views, connect, octets
from tests.speed_layer.boards.shard import LOG, Shard, event, ranked
from tests.views_server import ViewsServer, views_server

pytestmark = pytest.mark.redis

DAY_US, HOUR_US = 86_400_000_000, 3_600_000_000
START_US = 1_794_650_400_000_000
PLAYERS = ["a", "aa", "a\x7f", "ab", "b", "ä", "夜", "🎵" * 64, "zz", "z"]
KINDS = (PeriodKind.ALL_TIME, PeriodKind.DAILY)


def game(mode: Mode, **other: object) -> Boards:
    return Boards({"default": Game(name="default", mode=mode, kinds=KINDS, **other)})  # type: ignore[arg-type]  # of many kinds


def _locales() -> str:
    return subprocess.run(["locale", "-a"], capture_output=True, text=True, check=True).stdout.lower()


@pytest.fixture(scope="module", params=["C.UTF-8", "en_US.UTF-8"])
def server(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[ViewsServer]:
    if request.param.replace("-", "").lower() not in _locales():
        pytest.skip(f"this machine has no {request.param}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LC_ALL", request.param)
        with views_server(tmp_path_factory.mktemp("views")) as found:
            yield found


@pytest.fixture
def views(server: ViewsServer) -> Iterator[Views]:
    with connect(server.address) as found:
        found.client.flushall()
        yield found


def all_looks(shard: Shard, board: str, around: int) -> dict[str, Look]:
    async def ask(reader: BoardsReader) -> dict[str, Look]:
        return {
            player: await reader.look(shard.number, board, player_id=player, above=around, below=around)
            for player in PLAYERS
        }

    return shard.read(ask)


def paged(shard: Shard, board: str, size: int) -> list[bytes]:
    """All members, page by page behind the last one of the page before."""

    async def ask(reader: BoardsReader) -> list[bytes]:
        found: list[bytes] = []
        while True:
            look = await reader.look(shard.number, board, member=found[-1] if found else b"", below=size)
            assert look.before == max(0, len(found) - 1)
            if not look.below:
                return found
            found += look.below

    return shard.read(ask)


def require_same(shard: Shard, board: str, random: Random) -> None:
    """Compare all that can be asked of a board with what stands there."""
    shard.require_invariants(board)
    members, around = shard.plainly.members(board), random.choice([0, 1, 2, 5])
    entries = shard.plainly.entries(board)
    for player, look in all_looks(shard, board, around).items():
        assert (look.entry, look.size) == (entries.get(player), len(members))
        if player not in entries:
            continue
        place = member(entries[player][:KEY_BYTES], player)
        rank = members.index(place)
        assert look.before == rank
        assert list(look.above) == members[max(0, rank - around) : rank][::-1]
        assert list(look.below) == members[rank + 1 : rank + 1 + around]
    scores = [one[:SCORE_BYTES] for one in members]
    counted = shard.read(lambda reader: reader.counts(shard.number, [(board, score) for score in scores]))
    assert list(counted) == [ranked(members, score) for score in scores]
    places = shard.read(lambda reader: reader.places(shard.number, board, PLAYERS))
    assert sorted(places.members) == [(one, rank) for rank, one in enumerate(members)]
    assert places.size == len(members)
    assert paged(shard, board, random.choice([1, 3, 20])) == members


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_boards_are_what_all_events_say(
    server: ViewsServer, views: Views, mode: Mode, seed: int
) -> None:
    random = Random(seed)
    shard = Shard(server, views, game(mode, hold_above=None if seed % 2 else 4))
    now = START_US
    for step in range(60):
        now += random.choice([0, 1, HOUR_US // 7, HOUR_US * 9])
        events = []
        for _ in range(random.randint(1, 5)):
            kind = random.choices(list(EventKind), weights=[14, 1, 2, 2, 0.3])[0]
            ended = now - random.choice([0, 0, 1, HOUR_US, DAY_US - 1, 2 * DAY_US])
            events.append(
                event(
                    kind,
                    random.choice(PLAYERS),
                    match_id=f"m{random.randrange(9)}.{(now - START_US) // (20 * HOUR_US)}",  # within the live window
                    score=random.choice([0, 0, 1, 1, 2, 5, -3, 2**53, 2**53 + 1, 2**40 if mode is Mode.SUM else 2**62]),
                    ended_us=ended if kind is EventKind.SCORE else NOT_SAID,
                    fingerprint=random.randrange(3),
                )
            )
        shard.apply(now, *events)
        made = sorted(shard.plainly.boards_made())
        if made and random.random() < 0.15:
            shard.rebase(random.choice(made), page=random.choice([1, 2, 4]))
        if step % 6 == 5:
            for board in made[:1] + made[-2:]:
                require_same(shard, board, random)
    assert len(shard.plainly.counted) > 20


def test_a_ban_hides_at_once_lives_on_out_of_sight_and_its_end_gives_the_exact_place(
    server: ViewsServer, views: Views
) -> None:
    shard = Shard(server, views, game(Mode.BEST_HIGH))
    shard.apply(START_US, event(player="a", match_id="1", score=5), event(player="b", match_id="2", score=3))
    shard.rebase("default|all_time")
    shard.apply(
        START_US + 1, event(EventKind.BAN, "a", until_us=START_US + 100), event(player="a", match_id="3", score=9)
    )
    hidden = all_looks(shard, "default|all_time", 2)
    shard.lift("a", logged_us=START_US + 200)
    back = all_looks(shard, "default|all_time", 2)

    assert (hidden["a"].entry, hidden["b"].before, hidden["b"].size) == (None, 0, 1)
    assert (back["a"].before, back["b"].before, back["b"].size) == (0, 1, 2)
    require_same(shard, "default|all_time", Random(1))
    assert shard.writer.bans() == {}


def test_events_that_were_applied_already_and_boards_that_changed_hands_are_refused_and_change_nothing(
    server: ViewsServer, views: Views
) -> None:
    shard = Shard(server, views, game(Mode.SUM))
    shard.apply(START_US, event(player="a", match_id="1", score=5))
    other = BoardWriter(views, 0, shard.writer.generation)
    other.state()
    before = sorted((key, views.client.dump(key)) for key in views.client.keys("*"))
    shard.at = None
    with pytest.raises(BoardsMovedError, match="another position than expected"):
        shard.apply(START_US, event(player="a", match_id="2", score=5))
    shard.at = Applied(1, WHOLE, 0)
    before_all = views.client.hget(shard.key("boards"), "default|all_time")
    views.client.hset(shard.key("boards"), "default|all_time", "7 1 0 0 512 0")
    with pytest.raises(BoardsMovedError, match="another version than expected"):
        shard.apply(START_US, event(player="a", match_id="2", score=5))
    views.client.hset(shard.key("boards"), "default|all_time", octets(before_all))

    assert sorted((key, views.client.dump(key)) for key in views.client.keys("*")) == before
    other.begin("log-2", partitions=1)
    with pytest.raises(BoardsMovedError, match="another log than expected"):
        shard.apply(START_US, event(player="a", match_id="2", score=5))
    assert other.state().log_id == "log-2"
    assert LOG not in {other.state().log_id}


def test_nothing_is_served_before_a_shard_is_whole(server: ViewsServer, views: Views) -> None:
    shard = Shard(server, views, game(Mode.SUM))
    with pytest.raises(BoardsNotReadyError):
        all_looks(shard, "default|all_time", 1)
    shard.writer.say(as_of_ms=5, ready=True)
    assert all_looks(shard, "default|all_time", 1)["a"] == Look(as_of_ms=5)
