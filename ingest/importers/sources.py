"""Opens a file by its format."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingest.importers.chunks import Reader
from ingest.importers.columns import Field, Fields
from ingest.importers.csv import open_csv
from ingest.importers.jsonl import check_jsonl, open_jsonl
from ingest.importers.parquet import open_parquet
from ingest.importers.request import ColumnNotGivenError, Format, ImportRequest
from ingest.importers.spotify import check_spotify, open_spotify, spotify_fields


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file, its format and its columns. It may be opened as often as needed."""

    path: Path
    format: Format
    fields: Fields
    delimiter: str

    @classmethod
    def of(cls, path: Path, request: ImportRequest) -> "SourceFile":
        """Find out how a file is to be read; it is opened only where the format needs a look inside.

        Raises:
            ColumnNotGivenError, BadTemplateError, UnknownFormatError, BadDelimiterError, NotASpotifyExportError.
        """
        kind = request.format_of(path)
        given = request.columns()
        fields = spotify_fields(path, given) if kind is Format.SPOTIFY else _named_fields(kind, given)
        return cls(path, kind, fields, request.delimiter_of(path))

    def check(self) -> None:
        """See that the file can be read and has its columns; JSON is read until each of them has come up.

        Raises:
            BadRequestError: what its format raises when it cannot be read so.
            DamagedFileError: its beginning cannot be read.
        """
        match self.format:
            case Format.JSONL:
                check_jsonl(self.path, self.fields)
            case Format.SPOTIFY:
                check_spotify(self.path, self.fields, delimiter=self.delimiter)
            case _:
                with self.open():
                    pass

    @contextmanager
    def open(self) -> Iterator[Reader]:
        """Open the file, which was checked.

        Raises:
            BadRequestError: what its format raises when it cannot be read so.
        """
        with self._opened() as reader:
            yield reader

    def _opened(self) -> AbstractContextManager[Reader]:
        match self.format:
            case Format.CSV:
                return open_csv(self.path, self.fields, delimiter=self.delimiter)
            case Format.JSONL:
                return open_jsonl(self.path, self.fields)
            case Format.PARQUET:
                return open_parquet(self.path, self.fields)
            case Format.SPOTIFY:
                return open_spotify(self.path, self.fields, delimiter=self.delimiter)


def _named_fields(kind: Format, given: Mapping[str, Field]) -> Fields:
    for name in ("item", "time"):
        if name not in given:
            raise ColumnNotGivenError(name, kind)
    fields: dict[str, Any] = dict(given)
    return Fields(**fields)
