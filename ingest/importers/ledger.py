"""Which file of a source is which: numbers are given once, known files are found again by content."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.errors import BadRequestError
from domain.tables import PLAYS, REJECTS
from ingest.importers.context import Context
from ingest.importers.prefixes import Prefixes, find_prefixes
from ingest.importers.sources import SourceFile
from ingest.manifest import (
    ImportedFile,
    LostManifestError,
    Manifest,
    Segment,
    load_manifest,
    manifest_path,
    writer_id,
)

_NAMES_SHOWN = 3


class OtherContentError(BadRequestError):
    """A file does not begin with what was imported from it before, or is another file than the source has."""

    def __init__(self, source: str, path: str, known: Sequence[str]) -> None:
        super().__init__(source, path, known)
        self.source = source
        self.path = path
        self.known = known

    def __str__(self) -> str:
        known = ", ".join(self.known[:_NAMES_SHOWN]) + (", ..." if len(self.known) > _NAMES_SHOWN else "")
        return (
            f"source {self.source!r} was imported from other content ({known}) than {self.path} has: "
            "give another --source, or --append to add it as a further file; "
            "a known file must still begin with all the rows that were imported from it"
        )


class OtherOptionsError(BadRequestError):
    """A source is imported again with options that would read its rows differently."""

    def __init__(self, source: str, differences: Sequence[str]) -> None:
        super().__init__(source, differences)
        self.source = source
        self.differences = differences

    def __str__(self) -> str:
        return (
            f"source {self.source!r} was imported with other options ({'; '.join(self.differences)}): "
            "give the same ones, or another --source"
        )


@dataclass(frozen=True, slots=True)
class Assignment:
    """The number of a file in its source. `is_complete`: bronze has every row of it already.

    `rows` is how many rows the file has when it is complete.
    """

    number: int
    is_complete: bool = False
    rows: int = 0


class Ledger:
    """The manifest of one source during an import, which nobody else writes meanwhile."""

    def __init__(self, context: Context, source: str) -> None:
        self._context = context
        self.source = source
        self._manifest = Manifest(source, {})
        self._taken: set[int] = set()

    def open(self, paths: Sequence[Path]) -> None:
        """Read the manifest, drop what never reached the lake, and number the files of a new source.

        Raises:
            DamagedManifestError, LostManifestError, OtherOptionsError.
        """
        known = load_manifest(self._context.lake_root, self.source)
        options = self._context.request.options(paths[0])
        self._manifest = known or Manifest(self.source, options)
        for file in self._manifest.files:
            self._manifest = self._manifest.with_file(file.back_to(self._held(file)))
        self._agree_on(options)
        if not self._manifest.files:
            for path in paths:
                self._register(path)
            self._save()

    def file(self, number: int) -> ImportedFile:
        """Return what is known of a file."""
        return next(file for file in self._manifest.files if file.number == number)

    def put(self, file: ImportedFile) -> None:
        """Replace what is known of a file; it is on disk when this returns."""
        self._manifest = self._manifest.with_file(file)
        self._save()

    def assign(self, source_file: SourceFile) -> Assignment:
        """Find the number of a file, by its content where the source has content.

        Raises:
            OtherContentError: it is none of the source's files and may not join them.
        """
        found = self._by_content(source_file) or Assignment(self._by_name(source_file.path))
        self._taken.add(found.number)
        return found

    def other_content(self, path: Path) -> OtherContentError:
        """Return the error that says what the source was imported from."""
        known = [f"{file.name}, {file.rows} rows" for file in self._manifest.files if file.rows]
        return OtherContentError(self.source, str(path), known)

    def _by_content(self, source_file: SourceFile) -> Assignment | None:
        """Return the known file that this one is, or begins with; the longest one if there are several.

        The very same content is the same file even twice in one import; a file that goes on behind another
        one of the same import is a file of its own.
        """
        known = {file.number: file for file in self._manifest.files if file.rows}
        if not known:
            return None
        prefixes = self._compare(source_file, known)
        for number in prefixes.matching:
            if known[number].rows == prefixes.rows:
                return self._whole(known[number])
        grown = [number for number in prefixes.matching if number not in self._taken]
        return Assignment(grown[0]) if grown else None

    def _whole(self, file: ImportedFile) -> Assignment:
        """Return the assignment of a file that ends where its known rows end."""
        is_complete = self._context.writer.last_seq(PLAYS, writer_id(self.source, file.number)) >= file.rows
        if is_complete and not file.is_finished:  # it was killed between the last commit and saying so
            self.put(file.finished())
        return Assignment(file.number, is_complete, file.rows)

    def _compare(self, source_file: SourceFile, known: dict[int, ImportedFile]) -> Prefixes:
        report = self._context.reporter(source_file.path, "comparing")
        last = {number: file.checkpoints[-1] for number, file in known.items()}
        with source_file.open() as reader:
            return find_prefixes(reader, last, lambda rows: report(reader.share_done, rows))

    def _by_name(self, path: Path) -> int:
        """Return a number without rows: the one given to this name; any while the source has no rows."""
        empty = [file for file in self._manifest.files if not file.rows and file.number not in self._taken]
        same_name = [file for file in empty if file.name == _name(path)]
        if same_name:
            return same_name[0].number
        has_rows = any(file.rows for file in self._manifest.files)
        if empty and not has_rows:
            self.put(_renamed(empty[0], path))
            return empty[0].number
        if has_rows and not self._context.request.append:
            raise self.other_content(path)
        number = self._register(path)
        self._save()
        return number

    def _register(self, path: Path) -> int:
        number = len(self._manifest.files)
        file = ImportedFile(number, _name(path), (Segment(0, self._context.now),))
        self._held(file)
        self._manifest = self._manifest.with_file(file)
        return number

    def _held(self, file: ImportedFile) -> int:
        """Return how far bronze has the file: rows before it are in at least one of its tables.

        Raises:
            LostManifestError: further than the manifest knows.
        """
        writer, who = self._context.writer, writer_id(self.source, file.number)
        rows = max(0, writer.last_seq(PLAYS, who), writer.last_seq(REJECTS, who))
        if rows > file.rows:
            path = manifest_path(self._context.lake_root, self.source)
            raise LostManifestError(self.source, str(path), rows)
        return rows

    def _agree_on(self, options: dict[str, str]) -> None:
        before = self._manifest.options
        names = sorted(name for name in before.keys() | options.keys() if before.get(name) != options.get(name))
        if names and any(file.rows for file in self._manifest.files):
            was, now = ({name: known.get(name, "not given") for name in names} for known in (before, options))
            raise OtherOptionsError(self.source, [f"{name} was {was[name]}, now {now[name]}" for name in names])
        if names:
            self._manifest = Manifest(self.source, options, self._manifest.files)

    def _save(self) -> None:
        self._context.keep(self._manifest)


def _name(path: Path) -> str:
    """Return a file's name; bytes of it that are no UTF-8 become question marks, as it is only for people."""
    return path.name.encode("utf-8", "replace").decode()


def _renamed(file: ImportedFile, path: Path) -> ImportedFile:
    return ImportedFile(file.number, _name(path), file.segments, file.checkpoints, file.is_finished)
