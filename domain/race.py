"""The race: the same plays counted exactly and by a sketch of a chosen width, so that its errors can be watched.

It shows the bare sketch, four rows of cells and nothing else. Live charts are better than it: their buckets are exact
while small and keep the best items apart (docs/sketches.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from domain.draws import drawn, even_shares, zipf_shares
from domain.errors import BadRequestError
from domain.sketches.count_min import MAX_WIDTH, MIN_WIDTH, CountMin, Int64s, mixed

PLAYS: Final = 60_000
SONGS: Final = 5_000
SKEW: Final = 1.0
TOP: Final = 10
FRAMES: Final = 60
FRAME_SECONDS: Final = 0.15  # how long each is shown: about ten seconds for a race
WIDTHS: Final = tuple(1 << power for power in range(MIN_WIDTH.bit_length() - 1, MAX_WIDTH.bit_length()))
DEFAULT_WIDTH: Final = 128
DEFAULT_SEED: Final = 1
MOST_SEED: Final = 2**32 - 1
_EXACT_BYTES_A_SONG = 12  # of a packed map, as an exact bucket is: 8 bytes of key, 4 of count
_SALT = np.uint64(0x72616365)  # the songs of a race meet in other cells than their bare numbers would


class NoRaceError(BadRequestError):
    """There is no race of such a kind."""

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(option, problem)
        self.option = option
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.option} {self.problem}; `lakeboard race --help` shows what can be asked for"


@dataclass(frozen=True, slots=True)
class Row:
    """One place of both charts.

    Attributes:
        song: Best but `rank - 1` in truth; empty while fewer were played.
        count: Its plays.
        guessed: The song that the sketch has in this place.
        estimate: What the sketch says of it, never less than its plays.
    """

    rank: int
    song: str
    count: int
    guessed: str
    estimate: int

    @property
    def wrong(self) -> bool:
        """Whether the sketch has another song here."""
        return self.song != self.guessed


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """How the race stands.

    Attributes:
        played: Plays so far.
        rows: The best `TOP` by both.
        worst_error: Most that an estimate of a played song is above its plays.
        exact_bytes: Memory of the exact counts as a packed map.
        sketch_bytes: Memory of the sketch; it does not grow.
    """

    played: int
    rows: Sequence[Row]
    worst_error: int
    exact_bytes: int
    sketch_bytes: int

    @property
    def wrong_rows(self) -> int:
        """How many places the sketch has wrong."""
        return sum(row.wrong for row in self.rows)

    def body(self) -> dict[str, Any]:
        """Return the frame as it is said in JSON."""
        rows = [
            {"rank": row.rank, "item_id": row.song, "count": row.count, "sketch_item_id": row.guessed,
             "sketch_count": row.estimate, "wrong": row.wrong}
            for row in self.rows
        ]  # fmt: skip
        return {
            "played": self.played,
            "sketch_bytes": self.sketch_bytes,
            "exact_bytes": self.exact_bytes,
            "worst_error": self.worst_error,
            "wrong_rows": self.wrong_rows,
            "rows": rows,
        }


@dataclass(frozen=True)
class Race:
    """One race: all of it follows from its numbers.

    Args:
        width: Cells a row of the sketch, one of `WIDTHS`.
        seed: From 0 to `MOST_SEED`; the same seed, the same plays.

    Raises:
        NoRaceError: another width or seed.
    """

    width: int = DEFAULT_WIDTH
    seed: int = DEFAULT_SEED

    def __post_init__(self) -> None:
        if self.width not in WIDTHS:
            option, problem = "width", f"must be one of {', '.join(map(str, WIDTHS))}, not {self.width}"
            raise NoRaceError(option, problem)
        if not 0 <= self.seed <= MOST_SEED:
            option, problem = "seed", f"must be from 0 to {MOST_SEED}, not {self.seed}"
            raise NoRaceError(option, problem)

    @cached_property
    def plays(self) -> Int64s:
        """The number of the song of each play, in order: song n of 0, 1, ... is drawn with a weight of 1 / (n + 1)."""
        return drawn(zipf_shares(SONGS, SKEW), even_shares(np.random.PCG64(self.seed).random_raw(PLAYS)))

    def frames(self, number: int = FRAMES) -> Iterator[Frame]:
        """Yield how the race stands at `number` moments, evenly spread over the plays; the last one is the result."""
        songs = mixed(np.arange(SONGS, dtype=np.uint64) ^ _SALT)
        sketch, counts = CountMin(self.width), np.zeros(SONGS, dtype=np.int64)
        for some in np.array_split(self.plays, number):
            counts += np.bincount(some, minlength=SONGS)
            sketch.add(songs[some], np.ones(len(some), dtype=np.int64))
            yield _frame(counts, sketch.estimate(songs), sketch_bytes=sketch.cells.nbytes)

    def result(self) -> Frame:
        """Return how the race ends."""
        (last,) = self.frames(1)
        return last


def _frame(counts: Int64s, estimates: Int64s, *, sketch_bytes: int) -> Frame:
    played = np.flatnonzero(counts)
    estimates = np.where(counts > 0, estimates, 0)  # like the exact map, it is asked about songs that were played
    rows = [
        Row(rank, _name(song, counts), int(counts[song]), _name(guess, counts), int(estimates[guess]))
        for rank, (song, guess) in enumerate(zip(_best(counts), _best(estimates), strict=True), start=1)
    ]
    return Frame(
        played=int(counts.sum()),
        rows=rows,
        worst_error=int((estimates - counts)[played].max(initial=0)),
        exact_bytes=len(played) * _EXACT_BYTES_A_SONG,
        sketch_bytes=sketch_bytes,
    )


def _best(values: Int64s) -> list[int]:
    """Return the songs with the largest values; of equal ones, the first by name, which is by number."""
    order: list[int] = np.argsort(-values, kind="stable")[:TOP].tolist()
    return order


def _name(song: int, counts: Int64s) -> str:
    return f"song-{song + 1:04d}" if counts[song] else ""
