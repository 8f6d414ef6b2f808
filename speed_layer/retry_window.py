"""The retry window: which event ids were read in the last minutes of log time, so that a re-send counts once.

Ids are 64-bit keyed hashes, "once, up to collisions of 64 bits": about 4e-4 events a day are taken for copies by
mistake at 10,000 events/s. They stand in one sorted array for each minute of the log's time, 8 bytes an event.

An event is a copy when its id was read in the same minute of log time or in the `minutes` before it. A copy renews
its id, so a sender that retries for an hour without a pause that long counts once.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from domain.errors import LakeboardError

UInt64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_RUNS_TO_JOIN = 8  # sorted arrays of the present minute, before they are made one


class LogWentBackError(LakeboardError):
    """Events were handed over that are older, in log time, than those before them."""

    def __init__(self, before: int, now: int) -> None:
        super().__init__(before, now)
        self.before = before
        self.now = now

    def __str__(self) -> str:
        return (
            f"log time went back from minute {self.before} to {self.now}: entries were read out of order; "
            "start the consumer over from its checkpoint"
        )


class RetryWindow:
    """Ids of one partition by minute of log time.

    Args:
        minutes: How many whole minutes before an event's own are searched.
    """

    __slots__ = ("_minute", "_present", "_sealed", "minutes")

    def __init__(self, minutes: int = 15) -> None:
        self.minutes = minutes
        self._minute: int | None = None
        self._present: list[UInt64s] = []
        self._sealed: dict[int, UInt64s] = {}

    @property
    def minute(self) -> int | None:
        """Minute of log time since 1970 that it stands at; None before any event."""
        return self._minute

    @property
    def size_bytes(self) -> int:
        """Bytes of all ids."""
        return sum(ids.nbytes for ids in (*self._sealed.values(), *self._present))

    def first_copies(self, ids: UInt64s, log_minutes: Int64s) -> Mask:
        """Say of each event whether it is the first of its id, and remember all of them.

        Args:
            ids: Hash of each event's id, in the order of the log.
            log_minutes: Minute of log time since 1970 of each; never less than the one before.

        Raises:
            LogWentBackError: a minute is before an earlier one; nothing was remembered.
        """
        steps = np.flatnonzero(log_minutes[1:] != log_minutes[:-1]) + 1
        edges = [0, *steps.tolist(), len(ids)] if len(ids) else []
        known = [self._minute] if self._minute is not None else []
        order = [*known, *(int(log_minutes[edge]) for edge in edges[:-1])]
        for before, now in pairwise(order):
            if now < before:
                raise LogWentBackError(before, now)
        first = np.zeros(len(ids), dtype=np.bool_)
        for start, end in pairwise(edges):
            self.advance(int(log_minutes[start]))
            first[start:end] = self._first_of_a_minute(ids[start:end])
        return first

    def advance(self, minute: int) -> None:
        """Forget what is too old for events of this minute of log time; an earlier minute changes nothing."""
        if self._minute is not None and minute <= self._minute:
            return
        if self._minute is not None and self._present:
            self._sealed[self._minute] = _joined(self._present)
            self._present = []
        self._minute = minute
        for old in [m for m in self._sealed if m < minute - self.minutes]:
            del self._sealed[old]

    def chunks(self) -> Mapping[int, UInt64s]:
        """Return the sorted ids by minute of log time: all that has to be stored. Whole minutes never change again."""
        present = {self._minute: _joined(self._present)} if self._minute is not None and self._present else {}
        return {**self._sealed, **present}

    @classmethod
    def of_chunks(cls, chunks: Mapping[int, UInt64s], *, minute: int | None, minutes: int = 15) -> "RetryWindow":
        """Return the window that had these chunks at this minute of log time (None: before any event)."""
        window = cls(minutes)
        window._minute = minute
        window._sealed = {at: ids for at, ids in chunks.items() if at != minute}
        window._present = [ids for at, ids in chunks.items() if at == minute]
        return window

    def _first_of_a_minute(self, ids: UInt64s) -> Mask:
        order = np.argsort(ids, kind="stable")  # stable: the first copy of a batch is the one that counts
        ordered = ids[order]
        distinct = np.ones(len(ids), dtype=np.bool_)
        distinct[1:] = ordered[1:] != ordered[:-1]
        unlike = ordered[distinct]
        new = ~self._seen(unlike, self._present)
        self._remember(unlike[new])
        new[new] = ~self._seen(unlike[new], self._sealed.values())
        first = np.zeros(len(ids), dtype=np.bool_)
        first[order[distinct][new]] = True
        return first

    @staticmethod
    def _seen(ids: UInt64s, among: Iterable[UInt64s]) -> Mask:
        seen = np.zeros(len(ids), dtype=np.bool_)
        for chunk in among:
            places = np.searchsorted(chunk, ids)
            places[places == len(chunk)] = 0
            seen |= chunk[places] == ids
        return seen

    def _remember(self, ids: UInt64s) -> None:
        if len(ids):
            self._present.append(ids)
        if len(self._present) > _RUNS_TO_JOIN:
            self._present = [_joined(self._present)]


def _joined(runs: list[UInt64s]) -> UInt64s:
    if len(runs) == 1:
        return runs[0]
    joined = np.concatenate(runs)
    joined.sort(kind="stable")  # runs are sorted already, and a stable sort finds them
    return joined
