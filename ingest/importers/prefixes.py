"""Recognises files by content: digests of their first rows, whatever their name or compression."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ingest.importers.chunks import Chunk, Reader
from ingest.manifest import Checkpoint


class PrefixDigest:
    """SHA-256 over the header and the rows so far, each followed by one line feed."""

    def __init__(self, header: bytes) -> None:
        self._sha = hashlib.sha256(header + b"\n" if header else b"")
        self.rows = 0

    def update(self, chunk: Chunk) -> None:
        """Add the rows of a chunk, which follows what was added before."""
        self._sha.update(chunk.records.canonical())
        self.rows += len(chunk.records)

    def hex(self) -> str:
        """Return the digest of the rows so far."""
        return self._sha.copy().hexdigest()


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Which known files a file begins with.

    Attributes:
        matching: Numbers of files whose known rows are all here, at the beginning; the longest first.
        rows: Rows that were read: all of the file, or one chunk beyond the longest known file.
    """

    matching: Sequence[int]
    rows: int


def find_prefixes(reader: Reader, known: Mapping[int, Checkpoint], on_rows: Callable[[int], None]) -> Prefixes:
    """Read a file until no known file can be longer, and compare.

    Args:
        reader: The file, at its beginning.
        known: Last checkpoint of each file of the source, by number.
        on_rows: Told now and then how many rows have been read.
    """
    matching: list[tuple[int, int]] = []
    digest = PrefixDigest(reader.header)
    for piece in _pieces(reader, [checkpoint.rows for checkpoint in known.values()]):
        digest.update(piece)
        on_rows(digest.rows)
        here = [number for number, checkpoint in known.items() if checkpoint.rows == digest.rows]
        matching += [(digest.rows, number) for number in here if known[number].digest == digest.hex()]
        if digest.rows > max(checkpoint.rows for checkpoint in known.values()):
            break
    longest_first = sorted(matching, key=lambda match: (-match[0], match[1]))
    return Prefixes([number for _, number in longest_first], digest.rows)


def _pieces(reader: Reader, cuts: Sequence[int]) -> Iterator[Chunk]:
    for chunk in reader.chunks():
        yield from (piece for piece in chunk.pieces(cuts) if len(piece.records))
