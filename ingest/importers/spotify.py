"""Spotify: both official exports (JSON arrays) and CSV made of them, without naming any column."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from domain.errors import BadRequestError
from ingest.importers.chunks import Reader
from ingest.importers.columns import Field, Fields
from ingest.importers.csv import open_csv
from ingest.importers.json_array import check_json_array, open_json_array
from ingest.importers.streams import open_stream

# Times of all exports are UTC, the moment at which a play ended.
_MUSIC = "{trackName} ({artistName})"
_PODCAST = "{episodeName} ({podcastName})"


def _export(time: str, duration: str, region: str | None, *items: str) -> Fields:
    item = Field.parse(*items)
    return Fields(
        item=item,
        time=Field.parse(time),
        duration=Field.parse(duration),
        region=None if region is None else Field.parse(region),
        optional=frozenset(item.columns),
    )


_BY_TIME_COLUMN: Mapping[str, Fields] = {
    "endTime_utc": _export("endTime_utc", "msPlayed", None, _MUSIC),
    "endTime": _export("endTime", "msPlayed", None, _MUSIC, _PODCAST),
    "ts": _export(
        "ts",
        "ms_played",
        "conn_country",
        "{master_metadata_track_name} ({master_metadata_album_artist_name})",
        "{episode_name} ({episode_show_name})",
        "{audiobook_chapter_title} ({audiobook_title})",
    ),
}


class NotASpotifyExportError(BadRequestError):
    """A file has none of the time columns that Spotify's exports have."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return (
            f"{self.path} is no Spotify export (it has none of {', '.join(_BY_TIME_COLUMN)}): "
            "give another --format and name the columns"
        )


def spotify_fields(path: Path, given: Mapping[str, Field]) -> Fields:
    """Return the fields of an export by what stands at its beginning; given ones replace the export's own.

    Raises:
        UnopenableFileError: it cannot be opened.
        NotASpotifyExportError: it names no time column of an export in its first 64 KiB.
    """
    with open_stream(path) as stream:
        beginning = stream.read(1 << 16)
    found = [column for column in _BY_TIME_COLUMN if _names(beginning, column)]
    if not found and beginning.strip(b"[] \r\n\t\xef\xbb\xbf"):
        raise NotASpotifyExportError(str(path))
    changes: dict[str, Any] = dict(given)
    return replace(_BY_TIME_COLUMN[found[0] if found else "endTime"], **changes)


@contextmanager
def open_spotify(path: Path, fields: Fields, *, delimiter: str = ",") -> Iterator[Reader]:
    """Open an export, a JSON array or CSV.

    Raises:
        UnopenableFileError, NotAnArrayError, DamagedFileError, and what a CSV file raises.
    """
    is_array = _is_array(path)
    opened = open_json_array(path, fields) if is_array else open_csv(path, fields, delimiter=delimiter)
    with opened as reader:
        yield reader


def check_spotify(path: Path, fields: Fields, *, delimiter: str = ",") -> None:
    """See that an export has its columns.

    Raises:
        UnopenableFileError, NotAnArrayError, DamagedFileError, UnknownColumnError, and what a CSV file raises.
    """
    if _is_array(path):
        check_json_array(path, fields)
        return
    with open_csv(path, fields, delimiter=delimiter):
        pass


def _is_array(path: Path) -> bool:
    with open_stream(path) as stream:
        return stream.read(64).lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"[")


def _names(beginning: bytes, column: str) -> bool:
    """Say whether a JSON object or a CSV header at the beginning of a file has this column."""
    if beginning.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"["):
        return f'"{column}"'.encode() in beginning
    first_line = beginning.removeprefix(b"\xef\xbb\xbf").split(b"\n", maxsplit=1)[0]
    return column.encode() in first_line.replace(b'"', b"").rstrip(b"\r").split(b",")
