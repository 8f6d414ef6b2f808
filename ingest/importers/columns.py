"""Which columns make which field: `--item title`, `--item '{track} ({artist})'`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from domain.errors import BadRequestError
from ingest.texts import missing
from ingest.validate import RawFields

_PART = re.compile(r"\{([^{}]+)\}")
_NAMES_SHOWN = 50


class BadTemplateError(BadRequestError):
    """A template's braces do not match, or it names no column."""

    def __init__(self, template: str) -> None:
        super().__init__(template)
        self.template = template

    def __str__(self) -> str:
        return f"{self.template!r} is no template: put column names in braces, such as '{{track}} ({{artist}})'"


class UnknownColumnError(BadRequestError):
    """A file lacks a column that was asked for."""

    def __init__(self, path: str, column: str, present: Sequence[str]) -> None:
        super().__init__(path, column, present)
        self.path = path
        self.column = column
        self.present = present

    def __str__(self) -> str:
        shown = ", ".join(self.present[:_NAMES_SHOWN]) + (", ..." if len(self.present) > _NAMES_SHOWN else "")
        return f"{self.path} has no column {self.column!r}: name one of {shown or '(it has none)'}"


class RepeatedColumnError(BadRequestError):
    """A file has a column that was asked for twice."""

    def __init__(self, path: str, column: str, present: Sequence[str]) -> None:
        super().__init__(path, column, present)
        self.path = path
        self.column = column
        self.present = present

    def __str__(self) -> str:
        return (
            f"{self.path} has more than one column {self.column!r} "
            f"(it has {', '.join(self.present[:_NAMES_SHOWN])}): rename one of them in the header first"
        )


@dataclass(frozen=True, slots=True)
class Template:
    """Literal texts and columns in turn: `texts` has one more than `columns`."""

    texts: tuple[str, ...]
    columns: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a column name, or a text with column names in braces.

        Raises:
            BadTemplateError: braces that do not match.
        """
        if "{" not in text and "}" not in text:
            return cls(("", ""), (text,))
        parts = _PART.split(text)
        template = cls(tuple(parts[::2]), tuple(parts[1::2]))
        if not template.columns or any("{" in literal or "}" in literal for literal in template.texts):
            raise BadTemplateError(text)
        return template

    def fill(self, columns: Mapping[str, pa.Array]) -> pa.Array:
        """Return the text of each row, NULL where a column is empty. A lone column is given as it is."""
        if self.texts == ("", ""):
            return columns[self.columns[0]]
        parts: list[pa.Array | str] = [self.texts[0]]
        for name, text in zip(self.columns, self.texts[1:], strict=True):
            values = columns[name].cast(pa.string())
            parts += [pc.if_else(pa.array(missing(values)), pa.scalar(None, pa.string()), values), text]
        return pc.binary_join_element_wise(*parts, "")


@dataclass(frozen=True, slots=True)
class Field:
    """Templates of which the first that has a value is taken."""

    templates: tuple[Template, ...]

    @classmethod
    def parse(cls, *texts: str) -> Self:
        """Read one or more templates.

        Raises:
            BadTemplateError: braces that do not match.
        """
        return cls(tuple(Template.parse(text) for text in texts))

    @property
    def columns(self) -> list[str]:
        """All columns it may need."""
        return [column for template in self.templates for column in template.columns]

    def fill(self, columns: Mapping[str, pa.Array]) -> pa.Array:
        """Return the value of each row, NULL where no template has one."""
        filled = [template.fill(columns) for template in self.templates]
        return filled[0] if len(filled) == 1 else pc.coalesce(*(values.cast(pa.string()) for values in filled))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """Where each field of a play comes from; None = the source has no such field."""

    item: Field
    time: Field
    region: Field | None = None
    user: Field | None = None
    event_id: Field | None = None
    duration: Field | None = None
    count: Field | None = None
    optional: frozenset[str] = frozenset()  # columns that a file may lack: they are NULL then

    @property
    def wanted(self) -> list[str]:
        """Columns to read, each once."""
        texts = (self.item, self.region, self.user, self.event_id)
        return list(dict.fromkeys([*_columns(texts), *self.numeric]))

    @property
    def numeric(self) -> list[str]:
        """Columns in which a number with decimals makes sense."""
        return _columns((self.time, self.duration, self.count))

    def fill(self, columns: Mapping[str, pa.Array]) -> RawFields:
        """Return the fields of parsed columns."""
        asked = ("region", "user", "event_id", "duration", "count")
        fields: dict[str, Field | None] = {name: getattr(self, name) for name in asked}
        filled = {name: _text(field.fill(columns)) for name, field in fields.items() if field is not None}
        return RawFields(item=_text(self.item.fill(columns)), time=self.time.fill(columns), **filled)


def place_columns(path: str, present: Sequence[str], fields: Fields) -> dict[str, int]:
    """Return the place of each wanted column of a file that has a header; optional ones may be absent.

    Raises:
        UnknownColumnError: a wanted column is not there.
        RepeatedColumnError: a wanted column is there twice.
    """
    places = {name: place for place, name in reversed(list(enumerate(present)))}
    for name in fields.wanted:
        if name not in places and name not in fields.optional:
            raise UnknownColumnError(path, name, present)
        if present.count(name) > 1:
            raise RepeatedColumnError(path, name, present)
    return {name: places[name] for name in fields.wanted if name in places}


def _text(values: pa.Array) -> pa.Array:
    return values if values.type == pa.string() else values.cast(pa.string())


def _columns(fields: Iterable[Field | None]) -> list[str]:
    return [column for field in fields if field is not None for column in field.columns]
