"""Why each row of a chunk is refused, if it is: the first reason found stands."""

from collections import Counter

import numpy as np
import numpy.typing as npt

from domain.events import Reject

Mask = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]

_REASONS = tuple(Reject)
_CODES = {reason: code for code, reason in enumerate(_REASONS, start=1)}


class Verdicts:
    """One verdict a row: accepted until a reason is found; later reasons for the same row are not kept."""

    def __init__(self, rows: int) -> None:
        self._codes: npt.NDArray[np.int8] = np.zeros(rows, dtype=np.int8)

    def __len__(self) -> int:
        return len(self._codes)

    def refuse(self, rows: Mask, reason: Reject) -> None:
        """Refuse the rows that are set, unless they have a reason already."""
        self._codes[rows & (self._codes == 0)] = _CODES[reason]

    def refuse_one(self, row: int, reason: Reject) -> None:
        """Refuse one row, unless it has a reason already."""
        if self._codes[row] == 0:
            self._codes[row] = _CODES[reason]

    @property
    def accepted(self) -> Mask:
        """True where no reason was found."""
        accepted: Mask = self._codes == 0
        return accepted

    def refused(self) -> list[tuple[int, Reject]]:
        """Return (row, reason) of the refused rows, in order."""
        rows = np.flatnonzero(self._codes)
        return [(int(row), _REASONS[self._codes[row] - 1]) for row in rows]

    def by_reason(self) -> Counter[Reject]:
        """Return how many rows have each reason."""
        return Counter(reason for _, reason in self.refused())
