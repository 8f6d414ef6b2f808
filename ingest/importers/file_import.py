"""One file into bronze: read, compare with what is known, check, commit; a rerun repairs a kill anywhere.

Order of a commit: the manifest's checkpoint, then rejects, then plays. Transactions are exclusive end rows,
so what a killed import left is known exactly: rows before the last transaction are there, the others are not.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from domain.tables import PLAYS, REJECTS
from ingest.importers.chunks import Chunk
from ingest.importers.context import COMMIT_BYTES, Context
from ingest.importers.ledger import Ledger
from ingest.importers.plays import (
    Place,
    Rows,
    accepted_rows,
    commit_plays,
    commit_rejects,
    judged,
    refused_rows,
    said_rows,
)
from ingest.importers.prefixes import PrefixDigest
from ingest.importers.sources import SourceFile
from ingest.manifest import Checkpoint


@dataclass(frozen=True, slots=True)
class Taken:
    """Rows of a file: all that were read, those that bronze had before, those accepted now."""

    read: int
    already: int
    accepted: int


class FileImport:
    """Imports the rows of one file that bronze does not have."""

    def __init__(self, context: Context, ledger: Ledger, source_file: SourceFile, number: int) -> None:
        self._context = context
        self._ledger = ledger
        self._source_file = source_file
        self._place = Place(ledger.source, number, source_file.path)
        self._file = ledger.file(number)
        self._known = {checkpoint.rows: checkpoint for checkpoint in self._file.checkpoints}
        self._known_rows = self._file.rows
        self._plays_seq = max(0, context.writer.last_seq(PLAYS, self._place.writer))
        self._pending: list[Rows] = []
        self._accepted = 0

    def run(self) -> Taken:
        """Import the file to its end.

        Raises:
            OtherContentError: it does not begin with what was imported from it. Nothing of it is committed
            then.
            DamagedFileError: it cannot be read to its end. What was read before is in the lake.
        """
        already = self._plays_seq
        report = self._context.reporter(self._source_file.path, "importing")
        with self._source_file.open() as reader:
            digest = PrefixDigest(reader.header)
            for chunk in reader.chunks():
                for piece in chunk.pieces(self._cuts(chunk)):
                    self._take(piece, digest)
                report(reader.share_done, digest.rows)
        self._finish(digest)
        return Taken(digest.rows, already, self._accepted)

    def _cuts(self, chunk: Chunk) -> list[int]:
        """Return the rows at which something ends: what plays have, what is known, a commit."""
        step = self._context.commit_rows
        first = (chunk.first_row // step + 1) * step
        return [self._plays_seq, *self._known, *range(first, chunk.end_row, step)]

    def _take(self, piece: Chunk, digest: PrefixDigest) -> None:
        digest.update(piece)
        known = self._known.get(digest.rows)
        if known is not None and known.digest != digest.hex():
            raise self._ledger.other_content(self._source_file.path)
        if piece.end_row > self._plays_seq and len(piece.records):
            self._check(piece)
            self._commit_if_due(digest)

    def _check(self, piece: Chunk) -> None:
        checker = self._context.checker(self._judged_at(piece.first_row))
        checked, raw = judged(piece, self._source_file.fields, checker)
        said = said_rows(checked, piece, self._place, by_content=self._context.request.dedup_by_content)
        self._pending.append(Rows(accepted_rows(said), refused_rows(checked, raw, piece)))

    def _judged_at(self, row: int) -> datetime:
        """Return the clock for a row: now, or that of a killed import whose rejects are committed."""
        return next((c.judged_at for c in self._file.checkpoints if c.rows > row), self._context.now)

    def _commit_if_due(self, digest: PrefixDigest) -> None:
        """Commit at each multiple of the commit size, never before all known rows have been compared."""
        is_full = sum(rows.size_bytes for rows in self._pending) >= COMMIT_BYTES
        is_due = is_full or digest.rows % self._context.commit_rows == 0
        if digest.rows == self._known_rows or (is_due and digest.rows > self._known_rows):
            self._commit(digest)

    def _commit(self, digest: PrefixDigest) -> None:
        end = digest.rows
        checkpoint = Checkpoint(end, digest.hex(), self._context.now)
        self._file = self._file.resumed(self._context.now).reached(checkpoint)
        self._ledger.put(self._file)
        self._context.on_step("manifest")
        self._commit_rejects(_joined(rows.rejects for rows in self._pending), end)
        self._commit_plays(_joined(rows.plays for rows in self._pending), end)
        self._pending = []
        self._plays_seq = end

    def _commit_rejects(self, rejects: pa.Table, end: int) -> None:
        if len(rejects):  # after a kill they may be there: then so is their transaction, and it is skipped
            rows = commit_rejects(rejects, self._place, began=self._file.began(self._plays_seq), end_row=end)
            self._context.writer.append(REJECTS, rows, writer=self._place.writer, seq=end)
        self._context.on_step("rejects")

    def _commit_plays(self, plays: pa.Table, end: int) -> None:
        self._accepted += len(plays)
        rows = commit_plays(plays, self._place, began=self._file.began(self._plays_seq), end_row=end)
        self._context.writer.append(PLAYS, rows, writer=self._place.writer, seq=end)
        self._context.on_step("plays")

    def _finish(self, digest: PrefixDigest) -> None:
        if digest.rows < self._known_rows:
            raise self._ledger.other_content(self._source_file.path)
        if self._pending:
            self._commit(digest)
        if not self._file.is_finished:
            self._file = self._file.finished()
            self._ledger.put(self._file)
        self._context.on_step("finished")


def _joined(tables: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables(list(tables))
