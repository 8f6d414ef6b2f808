"""What an import remembers: which files of a source it has read, how far, when each part began.

`<lake root>/_imports/<16 hex digits of the source's name>.json`, version 1. It is written before the rows
that it tells of are committed, so bronze is never ahead of it.
"""

import hashlib
from datetime import datetime
from pathlib import Path
from typing import Literal, Self

import msgspec

from domain.errors import LakeboardError
from domain.position import LAKE_WRITER
from ingest.durable import replace_file


class DamagedManifestError(LakeboardError):
    """The manifest of a source cannot be read, or was written by a newer lakeboard."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return (
            f"the manifest {self.path} cannot be read ({self.problem}): restore it from a backup, "
            "update lakeboard if a newer one wrote it, or import under another --source"
        )


class LostManifestError(LakeboardError):
    """Bronze holds rows of a source that its manifest knows nothing of."""

    def __init__(self, source: str, path: str, rows: int) -> None:
        super().__init__(source, path, rows)
        self.source = source
        self.path = path
        self.rows = rows

    def __str__(self) -> str:
        return (
            f"bronze holds {self.rows} rows of source {self.source!r} that its manifest does not know: "
            f"restore {self.path} from a backup, or import under another --source"
        )


class Segment(msgspec.Struct, frozen=True):
    """Rows from `from_row` to the next segment: first met by an import that began at `began` (UTC)."""

    from_row: int
    began: datetime


class Checkpoint(msgspec.Struct, frozen=True):
    """The first `rows` rows of a file.

    Attributes:
        rows: How many.
        digest: SHA-256 of the header and these rows, each followed by one line feed, in hex.
        judged_at: The clock by which the last of these rows were called in the future or not, UTC.
    """

    rows: int
    digest: str
    judged_at: datetime


class ImportedFile(msgspec.Struct, frozen=True):
    """One file of a source.

    Attributes:
        number: From 0, in order of first import: `log_partition` of its rows.
        name: Without folders, for people; a file is known by its content.
        segments: In order; the first starts at row 0.
        checkpoints: In order; the last one tells how far the file is read, or is about to be.
        is_finished: Its end was reached, so rows that come later start a segment.
    """

    number: int
    name: str
    segments: tuple[Segment, ...]
    checkpoints: tuple[Checkpoint, ...] = ()
    is_finished: bool = False

    @property
    def rows(self) -> int:
        """Rows that the last checkpoint covers."""
        return self.checkpoints[-1].rows if self.checkpoints else 0

    def back_to(self, rows: int) -> Self:
        """Return the file as it was before anything beyond these rows was begun."""
        kept = tuple(checkpoint for checkpoint in self.checkpoints if checkpoint.rows <= rows)
        return self if kept == self.checkpoints else msgspec.structs.replace(self, checkpoints=kept, is_finished=False)

    def reached(self, checkpoint: Checkpoint) -> Self:
        """Return the file with one more checkpoint, or as it is when that is known."""
        if checkpoint.rows <= self.rows:
            return self
        return msgspec.structs.replace(self, checkpoints=(*self.checkpoints, checkpoint), is_finished=False)

    def resumed(self, now: datetime) -> Self:
        """Return the file with a segment for rows that came after its end was reached once."""
        if not self.is_finished:
            return self
        segments = (*self.segments, Segment(self.rows, now)) if self.rows else (Segment(0, now),)
        return msgspec.structs.replace(self, segments=segments, is_finished=False)

    def finished(self) -> Self:
        """Return the file with its end reached."""
        return msgspec.structs.replace(self, is_finished=True)

    def began(self, row: int) -> datetime:
        """Return when the segment of a row began, UTC."""
        return [segment.began for segment in self.segments if segment.from_row <= row][-1]


class Manifest(msgspec.Struct, frozen=True):
    """All files of one source, and the options they were read with."""

    source: str
    options: dict[str, str]
    files: tuple[ImportedFile, ...] = ()
    version: Literal[1] = 1

    def with_file(self, file: ImportedFile) -> Self:
        """Return the manifest with this file in its place, or added."""
        others = [known for known in self.files if known.number != file.number]
        return msgspec.structs.replace(self, files=tuple(sorted([*others, file], key=lambda known: known.number)))


def log_id(source: str) -> str:
    """Return the log that rows of a source come through."""
    return f"import/{source}"


def writer_id(source: str, number: int) -> str:
    """Return who commits the rows of one file; its transactions are exclusive end rows."""
    return f"{LAKE_WRITER}{log_id(source)}/{number}"


def manifest_path(lake_root: Path, source: str) -> Path:
    """Return where the manifest of a source is."""
    return lake_root / "_imports" / f"{hashlib.sha256(source.encode()).hexdigest()[:16]}.json"


def load_manifest(lake_root: Path, source: str) -> Manifest | None:
    """Return the manifest of a source, None before its first import.

    Raises:
        DamagedManifestError: it cannot be read.
    """
    path = manifest_path(lake_root, source)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, OSError) as error:
        raise DamagedManifestError(str(path), str(error)) from error


def save_manifest(lake_root: Path, manifest: Manifest) -> None:
    """Replace the manifest of a source; it is on disk when this returns, and never half written."""
    path = manifest_path(lake_root, manifest.source)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
