"""Splits lines of CSV into rows with Python's csv module, keeping each row's own bytes and line."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from domain.events import Reject

_EVERY_ROW = 2**63


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a row cannot be used, with the parser's words."""

    reason: Reject
    detail: str


class Row(NamedTuple):
    """One row: its bytes without the line end, the line it starts on, its fields, and why it has none."""

    raw: bytes
    line: int
    fields: Sequence[str]
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """Rows of a block, what is left of it (an unfinished row), and the line on which the rest starts."""

    rows: list[Row]
    rest: bytes
    line: int


class _Lines:
    """Lines as text from one of them on; remembers whether the reader asked for more than there were."""

    def __init__(self, lines: Sequence[bytes], start: int) -> None:
        self._lines = lines
        self._start = start
        self.is_exhausted = False

    def __iter__(self) -> Iterator[str]:
        for place in range(self._start, len(self._lines)):
            yield self._lines[place].decode("utf-8", "surrogateescape")
        self.is_exhausted = True


def split_rows(block: bytes, *, line: int, delimiter: str, is_last: bool, most: int = _EVERY_ROW) -> Split:
    """Split whole lines into rows; blank lines are no rows.

    A line at which the csv module fails is one unreadable row, and reading goes on at the next line. A quote
    that is open at the end of the block is left over, unless nothing comes after it.

    Args:
        block: Whole lines.
        line: Line of the file on which the block starts, from 1.
        delimiter: One character.
        is_last: Nothing comes after this block.
        most: Rows to split off; the others are left over.
    """
    lines = block.splitlines(keepends=True)
    is_sound = is_utf8(block)
    rows: list[Row] = []
    start = 0
    while start < len(lines) and len(rows) < most:
        source = _Lines(lines, start)
        begin = start
        reader = csv.reader(source, delimiter=delimiter, strict=True)
        try:
            for fields in reader:
                end = begin + reader.line_num
                if fields:
                    raw = _bare(lines[start] if end - start == 1 else b"".join(lines[start:end]))
                    rows.append(Row(raw, line + start, fields, None if is_sound else _fault(raw)))
                start = end
                if len(rows) == most:
                    break
        except csv.Error as error:
            if source.is_exhausted and not is_last:
                break
            rows.append(Row(_bare(lines[start]), line + start, (), Fault(Reject.UNREADABLE_ROW, str(error))))
            start += 1
    return Split(rows, b"".join(lines[start:]), line + start)


def split_lines(text: bytes, *, delimiter: str) -> list[list[str]] | None:
    """Return the fields of lines of UTF-8, none blank, None unless every line is one row."""
    lines = text.decode().removesuffix("\n").split("\n")
    try:
        rows = list(csv.reader(lines, delimiter=delimiter, strict=True))
    except csv.Error:
        return None
    return rows if len(rows) == len(lines) else None


def is_utf8(text: bytes) -> bool:
    """Say whether bytes are UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _fault(raw: bytes) -> Fault | None:
    return None if is_utf8(raw) else Fault(Reject.NOT_UTF8, "bytes that are no UTF-8")


def _bare(line: bytes) -> bytes:
    """Return a row without the end of its last line."""
    return line.removesuffix(b"\n").removesuffix(b"\r") if line.endswith(b"\n") else line.removesuffix(b"\r")
