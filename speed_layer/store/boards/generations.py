"""Generations of a shard: all of its boards as they were made at once; one is live, the next is made beside it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from speed_layer.store.boards.keys import of_generation, of_shard
from speed_layer.store.boards.scripts import SWAP
from speed_layer.store.connection import Views, octets

_UNLINKED: Final = 500  # keys in one go: what is read meanwhile waits a millisecond at most


@dataclass(frozen=True)
class Generations:
    """The generations of a shard. Every call may raise `ViewsUnavailableError`.

    Args:
        views: The server.
        shard: Which.
    """

    views: Views
    shard: int

    def live(self) -> int | None:
        """Return the one that readers take; None while there is none."""
        return self._number("live")

    def next(self) -> int | None:
        """Return the one that is to become live; None when there is none."""
        return self._number("next")

    def make(self) -> int:
        """Return the number of a new one, which nothing has had before, not even before the server lost all."""
        with self.views.translated():
            self.views.client.set(of_shard(self.shard, "made"), self.views.now_ms(), nx=True)
            made: Any = self.views.client.incr(of_shard(self.shard, "made"))
            return int(made)

    def put_live(self, generation: int) -> None:
        """Have readers take a generation, whatever they had; none is to come then."""
        with self.views.translated():
            self.views.client.set(of_shard(self.shard, "live"), generation)
            self.views.client.delete(of_shard(self.shard, "next"))

    def offer(self, generation: int) -> None:
        """Say that a generation is to become live; the consumer lets it catch up."""
        with self.views.translated():
            self.views.client.set(of_shard(self.shard, "next"), generation)

    def withdraw(self) -> None:
        """Say that none is to become live."""
        with self.views.translated():
            self.views.client.delete(of_shard(self.shard, "next"))

    def swap(self, old: int, new: int, partitions: Sequence[int]) -> bool:
        """Make `new` live instead of `old`, in one step, if it was offered and is no less far in any partition.

        Args:
            old: The one that is live.
            new: The one that was offered.
            partitions: Of the log, those of the shard.
        """
        keys = [of_shard(self.shard, name) for name in ("live", "next")]
        keys += [of_generation(self.shard, number, "state") for number in (old, new)]
        with self.views.translated():
            said: Any = self.views.client.eval(SWAP, len(keys), *keys, str(old), str(new), *_fields(partitions))
        return octets(said) == b"swapped"

    def forget(self, generation: int) -> Iterator[int]:
        """Drop a generation step by step, its state first, so that nobody writes it any more; yields keys dropped."""
        with self.views.translated():
            self.views.client.unlink(of_generation(self.shard, generation, "state"))
        yield from self._dropped(of_generation(self.shard, generation, "*"))

    def others(self) -> set[int]:
        """Return those that the server has anything of, but for the live one."""
        with self.views.translated():
            found = list(self.views.client.scan_iter(match=of_shard(self.shard, "g*:*"), count=1000))
        beginning = of_shard(self.shard, "g")
        return {int(octets(key).decode()[len(beginning) :].partition(":")[0]) for key in found} - {self.live()}

    def forget_all(self) -> None:
        """Drop the shard, at once."""
        with self.views.translated():
            self.views.client.delete(of_shard(self.shard, "live"))
        for _ in self._dropped(of_shard(self.shard, "*")):
            pass

    def _dropped(self, pattern: str) -> Iterator[int]:
        with self.views.translated():
            some: list[Any] = []
            for key in self.views.client.scan_iter(match=pattern, count=_UNLINKED):
                some.append(key)
                if len(some) == _UNLINKED:
                    self.views.client.unlink(*some)
                    yield len(some)
                    some = []
            if some:
                self.views.client.unlink(*some)
                yield len(some)

    def _number(self, name: str) -> int | None:
        with self.views.translated():
            found: Any = self.views.client.get(of_shard(self.shard, name))
        return None if found is None else int(octets(found))


def shards_of(views: Views) -> set[int]:
    """Return the shards that the server has anything of."""
    with views.translated():
        found = list(views.client.scan_iter(match="lb:board:{*}:live", count=1000))
    return {int(octets(key).decode().partition("{")[2].partition("}")[0]) for key in found}


def _fields(partitions: Sequence[int]) -> list[str]:
    return [f"p{number}" for number in partitions]
