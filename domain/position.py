"""How far a table has been read: a vector of writers' transactions, never a clock."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from domain.errors import LakeboardError

READ_TO = "read_to/"
LAKE_WRITER = "lake_writer/"
LOG_IN_USE = "log_in_use/"


class PositionWentBackError(LakeboardError):
    """A writer's transaction or the row count is behind what a release has already counted: rows were lost."""

    def __init__(self, what: str, before: int, now: int) -> None:
        super().__init__(what, before, now)
        self.what = what
        self.before = before
        self.now = now

    def __str__(self) -> str:
        return (
            f"bronze/plays went back: {self.what} was {self.before} when the last release was made "
            f"and is {self.now} now; a commit was removed or the lake was restored. Bring the missing files "
            "of its _delta_log back, or import the source again, then run again; the last release stays current"
        )


@dataclass(frozen=True, slots=True)
class BronzePosition:
    """A state of `bronze/plays`.

    Attributes:
        version: Delta version; only meaningful while the table is not vacuumed below it.
        events: Rows in the files of that version, by their statistics.
        writers: Writer -> its last transaction. A row belongs to the position when its `writer_seq` is at most that.
    """

    version: int
    events: int
    writers: Mapping[str, int]

    def to_json(self) -> str:
        """Return the writers as canonical JSON. Inverse: `writers_from_json`."""
        return json.dumps(dict(self.writers), sort_keys=True)

    def advances(self, since: Self) -> dict[str, int]:
        """Return the writers that moved since an earlier position, with the transaction they had then (-1: none).

        Raises:
            PositionWentBackError: the version, the rows or a writer is behind where it was.
        """
        self._refuse_back("the Delta version", since.version, self.version)
        self._refuse_back("the number of rows", since.events, self.events)
        for writer, before in since.writers.items():
            self._refuse_back(f"the transaction of {writer}", before, self.writers.get(writer, -1))
        return {w: since.writers.get(w, -1) for w, seq in self.writers.items() if seq > since.writers.get(w, -1)}

    @staticmethod
    def _refuse_back(what: str, before: int, now: int) -> None:
        if now < before:
            raise PositionWentBackError(what, before, now)


NOTHING_READ = BronzePosition(version=0, events=0, writers={})


def writers_from_json(text: str) -> dict[str, int]:
    """Read what `BronzePosition.to_json` wrote."""
    return {str(writer): int(seq) for writer, seq in json.loads(text).items()}
