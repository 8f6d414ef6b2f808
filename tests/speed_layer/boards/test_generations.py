"""Generations of a shard: which one is live, when another takes its place, and what is left of it."""

from collections.abc import Iterator

import pytest

from speed_layer.boards.deciding import Changes
from speed_layer.store.boards.generations import Generations, shards_of
from speed_layer.store.boards.writer import WHOLE, Applied, BoardsMovedError, BoardWriter
from speed_layer.store.connection import Views, connect
from tests.views_server import ViewsServer, views_server

pytestmark = pytest.mark.redis

ENTRY = 1_794_650_400_123 * 2**20 + 7  # beyond 2^53
PARTITIONS = [0, 3]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ViewsServer]:
    with views_server(tmp_path_factory.mktemp("views")) as found:
        yield found


@pytest.fixture
def views(server: ViewsServer) -> Iterator[Views]:
    with connect(server.address) as found:
        found.client.flushall()
        yield found


def made(views: Views, applied: dict[int, Applied], log: str = "log") -> BoardWriter:
    """A generation that is so far."""
    writer = BoardWriter(views, 0, Generations(views, 0).make())
    writer.begin(log, partitions=4)
    for partition, after in applied.items():
        writer.apply(log, partition, Changes(), before=None, after=after, as_of_ms=0, day=0)
    return writer


OLD = {0: Applied(ENTRY, 5, ENTRY - 1), 3: Applied(ENTRY, WHOLE, -1)}


@pytest.mark.parametrize(
    ("new", "swapped"),
    [
        (OLD, True),
        ({0: Applied(ENTRY, 6, ENTRY - 9), 3: Applied(ENTRY + 1, 1, ENTRY)}, True),
        ({0: Applied(ENTRY + 2**31, 1, ENTRY), 3: Applied(ENTRY, WHOLE, -1)}, True),
        ({0: Applied(ENTRY, 4, ENTRY - 1), 3: Applied(ENTRY + 1, 1, ENTRY)}, False),
        ({0: Applied(ENTRY - 1, WHOLE, 0), 3: Applied(ENTRY, WHOLE, -1)}, False),
        ({0: Applied(ENTRY - 2**31, WHOLE, 0), 3: Applied(ENTRY + 5, WHOLE, -1)}, False),
        ({0: Applied(ENTRY + 1, WHOLE, 0)}, False),
    ],
)
def test_a_generation_takes_the_place_of_another_only_if_it_is_no_less_far_in_any_partition(
    views: Views, new: dict[int, Applied], swapped: bool
) -> None:
    generations = Generations(views, 0)
    old, coming = made(views, OLD), made(views, new)
    generations.put_live(old.generation)
    assert not generations.swap(old.generation, coming.generation, PARTITIONS)  # nobody offered it
    generations.offer(coming.generation)

    assert generations.swap(old.generation, coming.generation, PARTITIONS) is swapped
    assert generations.live() == (coming if swapped else old).generation
    assert generations.next() == (None if swapped else coming.generation)


def test_a_generation_of_another_log_or_of_one_that_is_not_live_any_more_is_refused(views: Views) -> None:
    generations = Generations(views, 0)
    old, other, coming = made(views, OLD), made(views, {}, "other"), made(views, OLD)
    generations.put_live(old.generation)
    generations.offer(other.generation)
    assert not generations.swap(old.generation, other.generation, [])
    generations.offer(coming.generation)
    assert not generations.swap(other.generation, coming.generation, PARTITIONS)
    generations.withdraw()
    assert not generations.swap(old.generation, coming.generation, PARTITIONS)

    assert generations.live() == old.generation


def test_what_is_dropped_takes_no_more_writes_and_leaves_nothing_and_numbers_are_never_used_again(
    views: Views,
) -> None:
    generations = Generations(views, 0)
    old, new = made(views, OLD), made(views, OLD)
    generations.put_live(new.generation)
    for number in range(1200):
        views.client.set(f"lb:board:{{0}}:g{old.generation}:some:{number}", 1)
    assert generations.others() == {old.generation}
    steps = generations.forget(old.generation)
    assert next(steps) == 500
    with pytest.raises(BoardsMovedError, match="another log"):
        old.apply("log", 0, Changes(), before=OLD[0], after=OLD[0], as_of_ms=0, day=0)
    assert sum(steps) == 700
    assert generations.others() == set()
    assert shards_of(views) == {0}
    numbers = {old.generation, new.generation}
    generations.forget_all()
    assert views.client.keys("*") == []
    assert generations.make() not in numbers
