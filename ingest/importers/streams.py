"""Bytes of a file, unpacked, in blocks that end with a line."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from domain.errors import BadRequestError, LakeboardError
from ingest.importers.chunks import CHUNK_BYTES

MAX_LINE_BYTES = 64 << 20
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class UnopenableFileError(BadRequestError):
    """A file is not there, is a folder, or may not be read."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path} cannot be opened ({self.problem}): give the path of a file that you may read"


class NotUtf8FileError(BadRequestError):
    """A file is UTF-16 by its first bytes."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path} is UTF-16: turn it into UTF-8 first, for example with `iconv -f UTF-16 -t UTF-8`"


class LineTooLongError(BadRequestError):
    """A file has a line that cannot be held in memory."""

    def __init__(self, path: str, most_bytes: int) -> None:
        super().__init__(path, most_bytes)
        self.path = path
        self.most_bytes = most_bytes

    def __str__(self) -> str:
        return (
            f"{self.path} has a line of more than {self.most_bytes >> 20} MiB: it is no file of rows, "
            "see whether --format is right"
        )


class DamagedFileError(LakeboardError):
    """A compressed file ends too early or its content is broken."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return (
            f"{self.path} is damaged or incomplete ({self.problem}): get it again whole and run the same "
            "command, rows that were imported already are not counted twice"
        )


class ByteStream:
    """The unpacked bytes of one open file."""

    def __init__(self, path: Path, raw: BinaryIO) -> None:
        self.path = path
        self._raw = raw
        # A pipe has neither a size nor a place.
        self._size = max(os.fstat(raw.fileno()).st_size, 1) if raw.seekable() else None
        codec = _MAGIC.get(raw.peek(4)[:2]) or _MAGIC.get(raw.peek(4)[:4])  # type: ignore[attr-defined]
        plain = pa.PythonFile(raw, mode="r")
        self._bytes = plain if codec is None else pa.CompressedInputStream(plain, codec)

    @property
    def share_done(self) -> float:
        """How much of the file has been read, 0 to 1, by its bytes on disk; 0 for a pipe, whose end is not known."""
        return 0.0 if self._size is None else min(1.0, self._raw.tell() / self._size)

    def read(self, size: int) -> bytes:
        """Return the next bytes, fewer than `size` only at the end.

        Raises:
            DamagedFileError: the file cannot be unpacked.
        """
        parts: list[bytes] = []
        while size > 0:
            try:
                part: bytes = self._bytes.read(size)
            except OSError as error:
                raise DamagedFileError(str(self.path), str(error)) from error
            if not part:
                break
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def blocks(self) -> Iterator[bytes]:
        """Yield the file in blocks of whole lines, without a byte order mark; the last may lack its line end.

        Where a block ends depends on the unpacked bytes alone. Lines end with CR, LF or both; a block never
        parts the two.

        Raises:
            DamagedFileError: the file cannot be unpacked.
            LineTooLongError: a line is longer than 64 MiB.
            NotUtf8FileError: the file starts with a UTF-16 mark.
        """
        rest = self.read(len(BOM))
        if rest.startswith(_UTF_16):
            raise NotUtf8FileError(str(self.path))
        rest = rest.removeprefix(BOM)
        while more := self.read(CHUNK_BYTES):
            end = rest.rfind(b"\n") + 1 or rest.rfind(b"\r", 0, -1) + 1
            if end:
                yield rest[:end]
            rest = rest[end:] + more
            if len(rest) > MAX_LINE_BYTES:
                raise LineTooLongError(str(self.path), MAX_LINE_BYTES)
        if rest:
            yield rest


@contextmanager
def open_stream(path: Path) -> Iterator[ByteStream]:
    """Open a file; gzip and zstd are known by their first bytes.

    Raises:
        UnopenableFileError: it cannot be opened.
    """
    try:
        raw = path.open("rb")
    except OSError as error:
        raise UnopenableFileError(str(path), error.strerror or str(error)) from error
    with raw:
        yield ByteStream(path, raw)
