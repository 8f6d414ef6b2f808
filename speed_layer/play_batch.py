"""A micro-batch: plays of one partition as columns, in the order of the log."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

NOT_SAID: Final = -(2**63)  # of a time or a duration
_POSITIONS_A_MS: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayBatch:
    """All columns have one value a play.

    Attributes:
        positions: `EntryId.version` of the play's entry; never less than the one before.
        id_hashes: 64-bit keyed hash of the event's id.
        items: Item ids, NFC.
        regions: Upper case; `ZZ` = unknown.
        event_times_us: Microseconds since 1970 UTC; `NOT_SAID` = the log's time stands for it.
        durations_ms: Milliseconds; `NOT_SAID` where nothing was said.
        counts: At least 1.
    """

    positions: Int64s
    id_hashes: UInt64s
    items: Sequence[str]
    regions: Sequence[str]
    event_times_us: Int64s
    durations_ms: Int64s
    counts: Int64s

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def log_ms(self) -> Int64s:
        """Log time of each play, milliseconds since 1970 UTC."""
        return self.positions // _POSITIONS_A_MS

    @property
    def happened_us(self) -> Int64s:
        """Event time of each play, microseconds since 1970 UTC."""
        said = self.event_times_us != NOT_SAID
        return np.where(said, self.event_times_us, self.log_ms * 1000)
