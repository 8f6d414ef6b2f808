"""What is asked of an import and what it answers."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from domain.errors import BadRequestError, LakeboardError
from domain.events import Reject, normal_id
from ingest.importers.columns import Field
from ingest.importers.csv import checked_delimiter
from ingest.local_time import Ambiguous
from ingest.times import ISO
from ingest.validate import DurationUnit

MAX_SOURCE_BYTES = 128
_PACKED = (".gz", ".zst", ".zstd")
_SPOTIFY_NAMES = ("StreamingHistory", "Streaming_History", "endsong")


class Format(StrEnum):
    """What a file is."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"
    SPOTIFY = "spotify"


_BY_EXTENSION = {
    ".csv": Format.CSV,
    ".tsv": Format.CSV,
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".parquet": Format.PARQUET,
}


class UnknownFormatError(BadRequestError):
    """A file's name does not tell its format, and no format was given."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"the name of {self.path} does not tell what it is: give --format {'|'.join(Format)}"


class ColumnNotGivenError(BadRequestError):
    """A format without fixed columns was asked for without saying which column a field is."""

    def __init__(self, option: str, file_format: str) -> None:
        super().__init__(option, file_format)
        self.option = option
        self.file_format = file_format

    def __str__(self) -> str:
        return (
            f"--format {self.file_format} needs --{self.option} COLUMN: "
            "name the column, or a template such as '{a} ({b})'"
        )


class BadSourceNameError(BadRequestError):
    """A source name is empty, too long, or holds control characters."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.source = source

    def __str__(self) -> str:
        return (
            f"{self.source!r} cannot name a source: "
            f"give --source with 1 to {MAX_SOURCE_BYTES} bytes of text without control characters"
        )


class RowsDoNotAddUpError(LakeboardError):
    """The lake does not hold what was read: rows vanished or came twice."""

    def __init__(self, source: str, what: str, expected: int, found: int) -> None:
        super().__init__(source, what, expected, found)
        self.source = source
        self.what = what
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        return (
            f"import of {self.source!r} does not add up: "
            f"{self.what} should be {self.expected} and is {self.found}; do not publish from this lake, "
            "run `lakeboard verify` and report it with the file"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """Files and how to read them.

    Attributes:
        files: At least one.
        format: None = by each file's name.
        item: Column, or template; as are time, region, user, event_id, duration and count. None = the source
            has none, or the format knows.
        time_format: `iso`, `epoch_s|ms|us|ns` or a strptime pattern.
        time_zone: IANA name; the clock of times without a zone.
        ambiguous: What to do with local times that were shown twice.
        delimiter: Of CSV; None = comma, or tab for `.tsv`.
        source: None = each file's name without extensions.
        append: Other files may join a source that has files.
        dedup_by_content: Rows with equal text are one event.
    """

    files: tuple[Path, ...]
    format: Format | None = None
    item: str | None = None
    time: str | None = None
    region: str | None = None
    user: str | None = None
    event_id: str | None = None
    duration: str | None = None
    count: str | None = None
    time_format: str = ISO
    time_zone: str = "UTC"
    ambiguous: Ambiguous = Ambiguous.REFUSE
    duration_unit: DurationUnit = DurationUnit.MILLISECONDS
    delimiter: str | None = None
    source: str | None = None
    append: bool = False
    dedup_by_content: bool = False

    def columns(self) -> dict[str, Field]:
        """Return the fields that were given, by name.

        Raises:
            BadTemplateError: a template's braces do not match.
        """
        names = ("item", "time", "region", "user", "event_id", "duration", "count")
        return {name: Field.parse(text) for name in names if (text := getattr(self, name)) is not None}

    def options(self, path: Path) -> dict[str, str]:
        """Return what decides how rows become plays: compared between imports of one source."""
        said = asdict(self)
        left_out = {"files", "source", "append", "format", "delimiter"}
        options = {name: str(value) for name, value in said.items() if name not in left_out and value is not None}
        kind = self.format_of(path)
        if kind in (Format.CSV, Format.SPOTIFY):
            options["delimiter"] = self.delimiter_of(path)
        return options | {"format": kind}

    def format_of(self, path: Path) -> Format:
        """Return the format of a file, by its name when none was given.

        Raises:
            UnknownFormatError: the name does not tell.
        """
        if self.format is not None:
            return self.format
        if path.name.startswith(_SPOTIFY_NAMES) and ".json" in path.suffixes:
            return Format.SPOTIFY
        try:
            return _BY_EXTENSION[unpacked(path).suffix.lower()]
        except KeyError:
            raise UnknownFormatError(str(path)) from None

    def delimiter_of(self, path: Path) -> str:
        """Return what parts the fields of a CSV file.

        Raises:
            BadDelimiterError: what was given cannot.
        """
        if self.delimiter is not None:
            return checked_delimiter(self.delimiter)
        return "\t" if unpacked(path).suffix.lower() == ".tsv" else ","

    def source_of(self, path: Path) -> str:
        """Return the source that a file belongs to.

        Raises:
            BadSourceNameError: it cannot be one.
        """
        name = self.source if self.source is not None else unpacked(path).stem
        spelled = normal_id(name)
        if spelled is None or len(spelled.encode()) > MAX_SOURCE_BYTES:
            raise BadSourceNameError(name)
        return spelled


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a file is.

    Attributes:
        path: The file.
        stage: `comparing` with what was imported before, `importing`, `sending`.
        bytes_done: Bytes of the file, as it is on disk.
        bytes_total: Its size; 0 where it is not known.
        rows: Rows read in this stage.
    """

    path: Path
    stage: str
    bytes_done: int
    bytes_total: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSummary:
    """What the lake holds of one file after its import.

    Attributes:
        path: The file.
        source: Source it belongs to.
        number: Of the file in its source, from 0.
        read: Rows in the file = accepted + rejected = already + new_rows.
        accepted: Rows in bronze/plays.
        rejected_by_reason: Rows in bronze/rejects.
        already: Rows that the lake held before.
        new_rows: Rows that this import added, rejected ones included.
        repeated: Accepted rows whose event id an earlier row of the source has; None = not asked for.
    """

    path: Path
    source: str
    number: int
    read: int
    accepted: int
    rejected_by_reason: Mapping[Reject, int]
    already: int
    new_rows: int
    repeated: int | None = None

    @property
    def rejected(self) -> int:
        """Rows in bronze/rejects."""
        return sum(self.rejected_by_reason.values())

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        rejected = {reason.value: rows for reason, rows in sorted(self.rejected_by_reason.items())}
        return {
            "file": str(self.path),
            "source": self.source,
            "file_number": self.number,
            "read": self.read,
            "accepted": self.accepted,
            "rejected": self.rejected,
            "rejected_by_reason": rejected,
            "already": self.already,
            "new_rows": self.new_rows,
            "repeated": self.repeated,
        }


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """All files of one import, in the order given."""

    files: tuple[FileSummary, ...] = field(default_factory=tuple)

    @property
    def new_rows(self) -> int:
        """Rows that this import added."""
        return sum(file.new_rows for file in self.files)

    def __add__(self, other: Self) -> "ImportSummary":
        return ImportSummary(self.files + other.files)


def unpacked(path: Path) -> Path:
    """Return a file's name without the extension of its compression."""
    return path.with_suffix("") if path.suffix.lower() in _PACKED else path
