"""JSON: one array of objects, read piece by piece, as services export it."""

import codecs
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain.errors import BadRequestError
from domain.events import Reject
from ingest.importers.chunks import CHUNK_BYTES, Broken, Chunk, Parsed, Records
from ingest.importers.columns import Fields
from ingest.importers.csv_rows import is_utf8
from ingest.importers.json_keys import KeySearch
from ingest.importers.json_values import DecimalText, column
from ingest.importers.streams import ByteStream, DamagedFileError, open_stream

MAX_ELEMENT_CHARACTERS = 1 << 20
_CHUNK_ELEMENTS = 16_384
_BETWEEN = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder(parse_float=DecimalText)


class NotAnArrayError(BadRequestError):
    """A JSON file does not hold one array of objects."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path} is no JSON array of objects: for one object a line use --format jsonl"


@dataclass(frozen=True, slots=True)
class _Element:
    text: str
    line: int
    value: Any
    problem: str = ""

    @property
    def raw(self) -> bytes:
        return self.text.encode("utf-8", "surrogateescape")


class JsonArrayReader:
    """One JSON array. Satisfies `Reader`. An element that cannot be read ends at the next opening brace.

    An array that does not end, or is not all of the file, is damaged: nothing of its last block is given away then.
    """

    header = b""

    def __init__(self, stream: ByteStream, fields: Fields) -> None:
        """Read up to the first element.

        Raises:
            NotAnArrayError, DamagedFileError.
        """
        self._stream = stream
        self._fields = fields
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        self._text, self._at, self._line, self._is_last = "", 0, 1, False
        self._is_open = False
        self._open_array()

    @property
    def share_done(self) -> float:
        """How much of the file has been read, 0 to 1, by its bytes on disk."""
        return self._stream.share_done

    def chunks(self) -> Iterator[Chunk]:
        """Yield all elements in order.

        Raises:
            DamagedFileError: the array does not end, or the file does not end with it.
        """
        row = 0
        while elements := self._take():
            chunk = self._chunk(elements, row)
            yield chunk
            row = chunk.end_row

    def objects(self) -> Iterator[list[dict[str, Any] | None]]:
        """Yield all elements in order, some at a time; None for what is no object. In place of `chunks`."""
        while elements := self._take():
            yield [_object(element) for element in elements]

    def _chunk(self, elements: list[_Element], first_row: int) -> Chunk:
        records = Records([element.raw for element in elements])
        lines = [element.line for element in elements]
        return Chunk(first_row=first_row, records=records, lines=lines, parse=lambda: self._parse(elements))

    def _parse(self, elements: list[_Element]) -> Parsed:
        objects = [_object(element) for element in elements]
        numeric = set(self._fields.numeric)
        columns = {name: column(objects, name, numeric=name in numeric) for name in self._fields.wanted}
        broken = [_broken(row, elements[row]) for row, thing in enumerate(objects) if thing is None]
        return Parsed(columns, broken)

    def _take(self) -> list[_Element]:
        """Return the next elements, none at the array's end."""
        elements: list[_Element] = []
        size = 0
        while len(elements) < _CHUNK_ELEMENTS and size < CHUNK_BYTES:
            element = self._next()
            if element is None:
                break
            elements.append(element)
            size += len(element.text)
        return elements

    def _next(self) -> _Element | None:
        if not self._is_open:
            return None
        self._skip_between()
        if self._text[self._at] == "]":
            self._close_array()
            return None
        problem = self._problem_of_next()
        while isinstance(problem, str) and self._may_go_on():
            problem = self._problem_of_next()
        value, end, said = (None, self._resume_at(), problem) if isinstance(problem, str) else (*problem, "")
        element = _Element(self._text[self._at : end].rstrip(), self._line, value, said)
        self._line += self._text.count("\n", self._at, end)
        self._at = end
        return element

    def _problem_of_next(self) -> tuple[Any, int] | str:
        """Return (value, where it ends), or what is wrong: perhaps only that the text ends too early."""
        try:
            value, end = _DECODER.raw_decode(self._text, self._at)
        except (ValueError, RecursionError) as error:
            if self._is_last and _wants_more(error, len(self._text.rstrip())):
                raise self._not_ended() from error
            return str(error)
        return (value, end) if end < len(self._text) or self._is_last else "cut off"

    def _may_go_on(self) -> bool:
        """Read on behind an element that may only be cut off; False when it is broken."""
        if self._is_last or len(self._text) - self._at > MAX_ELEMENT_CHARACTERS:
            return False
        self._read_on()
        return True

    def _read_on(self) -> None:
        more = self._stream.read(CHUNK_BYTES)
        self._is_last = len(more) < CHUNK_BYTES
        self._text = self._text[self._at :] + self._decode(more, self._is_last)
        self._at = 0
        self._require_end()

    def _require_end(self) -> None:
        """Refuse the last block of an array that is still open and is not closed there."""
        if self._is_last and self._is_open and not self._text.rstrip().endswith("]"):
            raise self._not_ended()

    def _not_ended(self) -> DamagedFileError:
        return DamagedFileError(str(self._stream.path), "its array does not end with ]")

    def _skip_between(self) -> None:
        while True:
            match = _BETWEEN.match(self._text, self._at)
            end = match.end() if match else self._at
            self._line += self._text.count("\n", self._at, end)
            self._at = end
            if self._at < len(self._text) or self._is_last:
                return
            self._read_on()

    def _resume_at(self) -> int:
        """Return the next opening brace behind a broken element, else the end of the array or of what is here."""
        brace = self._text.find("{", self._at + 1)
        if brace >= 0:
            return brace
        return len(self._text.rstrip()) - 1 if self._is_last else len(self._text)

    def _open_array(self) -> None:
        self._read_on()
        self._text = self._text.removeprefix("\ufeff")
        self._skip_between()
        if self._text[self._at : self._at + 1] == "[":
            self._at += 1
            self._is_open = True
            self._require_end()
        elif self._at < len(self._text):
            raise NotAnArrayError(str(self._stream.path))

    def _close_array(self) -> None:
        self._at += 1
        self._is_open = False
        self._skip_between()
        if self._at < len(self._text):
            raise DamagedFileError(str(self._stream.path), f"its array ends in line {self._line}, and more follows")


@contextmanager
def open_json_array(path: Path, fields: Fields) -> Iterator[JsonArrayReader]:
    """Open a file of one JSON array.

    Raises:
        UnopenableFileError, NotAnArrayError, DamagedFileError.
    """
    with open_stream(path) as stream:
        yield JsonArrayReader(stream, fields)


def check_json_array(path: Path, fields: Fields) -> None:
    """Read a file of one JSON array until each wanted key has come up, which is mostly in its first object.

    Raises:
        UnopenableFileError, NotAnArrayError, DamagedFileError.
        UnknownColumnError: no object of the whole array has a wanted key.
    """
    search = KeySearch(fields)
    with open_json_array(path, fields) as reader:
        for objects in reader.objects():
            search.look(objects)
            if search.is_over:
                return
    search.require_found(str(path))


def _wants_more(error: Exception, end: int) -> bool:
    """Say whether a decoder failed only because the text ends here."""
    return isinstance(error, json.JSONDecodeError) and (error.pos >= end or error.msg.startswith("Unterminated string"))


def _object(element: _Element) -> dict[str, Any] | None:
    return element.value if isinstance(element.value, dict) and is_utf8(element.raw) else None


def _broken(row: int, element: _Element) -> Broken:
    if not is_utf8(element.raw):
        return Broken(row, Reject.NOT_UTF8, "bytes that are no UTF-8")
    return Broken(row, Reject.UNREADABLE_ROW, element.problem or "no JSON object")
