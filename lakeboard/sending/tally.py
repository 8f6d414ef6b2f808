"""What became of the rows so far, told by several threads; and the row from which sending would have to go on."""

import heapq
import threading
from collections import Counter
from collections.abc import Iterable

from domain.errors import LakeboardError
from lakeboard.sending.request import FileTally


class RowsLostError(LakeboardError):
    """Rows that were read are neither accepted nor refused."""

    def __init__(self, path: str, read: int, accounted: int) -> None:
        super().__init__(path, read, accounted)
        self.path = path
        self.read = read
        self.accounted = accounted

    def __str__(self) -> str:
        return (
            f"of {self.path} {self.read} rows were read, and {self.accounted} were accepted or refused: "
            "send it again, which is safe, and report it with the file"
        )


class Tally:
    """Counts rows by file, and finds the row before which every row is done.

    Args:
        files: One for each file, in order.
        from_row: Row of the first span, counted over all files.
    """

    def __init__(self, files: tuple[FileTally, ...], from_row: int) -> None:
        self.files = files
        self.repeated = 0
        self._lock = threading.Lock()
        self._done_through = from_row
        self._done_later: list[tuple[int, int]] = []

    @property
    def stands_at(self) -> int:
        """Row, counted over all files, before which every row was taken or refused."""
        return self._done_through

    @property
    def accepted(self) -> int:
        """Rows that the service has on disk."""
        return sum(file.accepted for file in self.files)

    def read(self, file: int, rows: int, refused: Iterable[str]) -> None:
        """Count rows that were read, and those of them that are refused here already, by reason."""
        with self._lock:
            self.files[file].read += rows
            self.files[file].refused.update(refused)

    def done(self, file: int, span: tuple[int, int], *, accepted: int, refused: Iterable[str], repeated: int) -> None:
        """Count a request that was answered.

        Args:
            file: Which file, from 0.
            span: Its rows, counted over all files: from the first, included, to the second, excluded. Spans of all
                requests follow each other without a gap, whatever order they are answered in.
            accepted: Rows taken.
            refused: Reasons of the others.
            repeated: Rows taken that an earlier one of the request had said already.
        """
        with self._lock:
            self.files[file].accepted += accepted
            self.files[file].refused.update(refused)
            self.repeated += repeated
            heapq.heappush(self._done_later, span)
            while self._done_later and self._done_later[0][0] <= self._done_through:
                self._done_through = max(self._done_through, heapq.heappop(self._done_later)[1])

    def require_whole(self) -> None:
        """See that every row that was read is accounted for.

        Raises:
            RowsLostError: one is not.
        """
        for file in self.files:
            accounted = file.accepted + Counter(file.refused).total()
            if accounted != file.read:
                raise RowsLostError(str(file.path), file.read, accounted)
