"""The file of rows that were not sent or not taken: one JSON object a line, in the words of `bronze/rejects`."""

import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import msgspec
import pyarrow as pa

from lakeboard.sending.client import Refused

_ODD = re.compile(r"[^A-Za-z0-9._-]")
_NAME_CHARACTERS = 80


class RejectsFile:
    """Takes refused rows from several threads. Use it as a context; without rows there is no file in the end.

    Args:
        path: Where it is. What is there of rows before `from_row` stays, the rest is written anew.
        from_row: Row on which this sending begins, counted over all files.
    """

    def __init__(self, path: Path, from_row: int) -> None:
        self.path = path
        self.rows = 0
        self._from_row = from_row
        self._lock = threading.Lock()
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        kept = _kept(self.path, self._from_row)
        self._file = self.path.open("wb")
        self._file.writelines(kept)
        self.rows = len(kept)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()
        if not self.rows:
            self.path.unlink()

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows; they are with the operating system when this returns."""
        if not rows or self._file is None:
            return
        lines = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
        with self._lock:
            self._file.write(lines)
            self._file.flush()
            self.rows += len(rows)


def rejects_name(source: str) -> str:
    """Return a name for the file of a source's rejects: what no file system minds stays, the rest becomes `_`."""
    return f"{_ODD.sub('_', source)[:_NAME_CHARACTERS]}.rejects.jsonl"


def unsent(rejects: pa.Table, *, file: str, rows_before: int) -> list[Mapping[str, Any]]:
    """Return rows that were refused here, as lines.

    Args:
        rejects: As the importer words them.
        file: Name of their file.
        rows_before: Rows of the files before it.
    """
    return [{"row": rows_before + row["source_row"], "file": file, **row} for row in rejects.to_pylist()]


def untaken(refused: Refused, *, file: str, rows_before: int, source_row: int, payload: str) -> Mapping[str, Any]:
    """Return a row that the service refused, as a line."""
    return {
        "row": rows_before + source_row,
        "file": file,
        "reason": refused.code,
        "detail": refused.detail,
        "source_row": source_row,
        "source_line": None,
        "payload": payload,
    }


def _kept(path: Path, from_row: int) -> list[bytes]:
    """Return the lines of rows that this sending leaves out."""
    if not from_row or not path.exists():
        return []
    with path.open("rb") as lines:
        return [line for line in lines if msgspec.json.decode(line)["row"] < from_row]
