"""Which file of its source is which: rows without an id are named by it, in `send` exactly as in `import`.

What was sent is remembered below LAKEBOARD_HOME in the form of an import's manifest, and an import's own manifest is
looked at too. So a file keeps its number whichever of the two meets it first, and other content under the name of a
known source is refused, since its rows would get ids that are taken.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ingest.importers.ledger import OtherOptionsError
from ingest.importers.prefixes import PrefixDigest, find_prefixes
from ingest.importers.request import ImportRequest
from ingest.importers.sources import SourceFile
from ingest.manifest import Checkpoint, ImportedFile, Manifest, Segment, load_manifest, save_manifest
from ingest.table_lock import locked
from lakeboard.sending.request import SourceChangedError


@dataclass(frozen=True, slots=True, kw_only=True)
class FileNumbers:
    """Numbers the files of sources.

    Attributes:
        sent_root: Folder of what was sent.
        lake_root: Folder of the lake, whose imports are known too; it need not be there.
        now: When this sending began, UTC.
    """

    sent_root: Path
    lake_root: Path
    now: datetime

    def assign(self, source: str, files: Sequence[SourceFile], request: ImportRequest) -> Mapping[Path, int]:
        """Return the number of each file of a source, and remember it by the first rows of the file.

        A known content has its number. Other files are numbered in the order given, as an import does; where a number
        is taken by other content, only `--append` goes on, behind all known ones.

        Raises:
            SourceChangedError: a number is taken by other content.
            OtherOptionsError: the source was read with other options.
            DamagedManifestError: what is remembered cannot be read.
        """
        options = request.options(files[0].path)
        with locked(self.sent_root, f"send/{source}"):
            sent = load_manifest(self.sent_root, source) or Manifest(source, options)
            imported = load_manifest(self.lake_root, source) or Manifest(source, options)
            numbers: dict[Path, int] = {}
            for place, file in enumerate(files):
                known = [*sent.files, *imported.files]
                here = set(numbers.values())
                number = _number(file, place, known, here, may_append=request.append)
                if number is None:
                    raise SourceChangedError(source, str(file.path))
                numbers[file.path] = number
                if any(one.rows for one in known):
                    _agree(source, options, (sent, imported))
                checkpoint = _beginning(file, self.now, whole=len(files) > 1)
                sent = sent.with_file(_remembered(sent, number, checkpoint, file.path, self.now))
            save_manifest(self.sent_root, Manifest(source, options, sent.files))
        return numbers

    def remember(self, source: str, number: int, checkpoint: Checkpoint, path: Path) -> None:
        """Remember a file by more of its rows, now that they were read."""
        with locked(self.sent_root, f"send/{source}"):
            sent = load_manifest(self.sent_root, source)
            if sent is not None:
                save_manifest(self.sent_root, sent.with_file(_remembered(sent, number, checkpoint, path, self.now)))


def digest_now(digest: PrefixDigest, now: datetime) -> Checkpoint:
    """Return what is remembered of the rows read so far."""
    return Checkpoint(digest.rows, digest.hex(), now)


def _number(
    file: SourceFile, place: int, known: Sequence[ImportedFile], here: Set[int], *, may_append: bool
) -> int | None:
    """Return the number of a file, None when it may have none.

    A file that goes on behind another one of the same command, whose numbers are `here`, is a file of its own.
    """
    with_rows = dict(enumerate(one for one in known if one.rows))
    if with_rows:
        with file.open() as reader:
            last = {at: one.checkpoints[-1] for at, one in with_rows.items()}
            found = find_prefixes(reader, last, lambda _: None)
        matching = [with_rows[at] for at in found.matching]
        same = [one.number for one in matching if one.rows == found.rows or one.number not in here]
        if same:
            return same[0]
    unread = [one.number for one in known if not one.rows and one.name == file.path.name]
    if unread:
        return unread[0]
    taken = {one.number for one in known}
    if place not in taken:
        return place
    return max(taken) + 1 if may_append else None


def _beginning(file: SourceFile, now: datetime, *, whole: bool) -> Checkpoint:
    """Return what names a file before any of it is sent: its first chunk, or all of it where others are to differ."""
    with file.open() as reader:
        digest = PrefixDigest(reader.header)
        for chunk in reader.chunks():
            digest.update(chunk)
            if digest.rows and not whole:
                break
    return digest_now(digest, now)


def _remembered(sent: Manifest, number: int, checkpoint: Checkpoint, path: Path, now: datetime) -> ImportedFile:
    """Return a file with this checkpoint, or with the one it has when that covers more rows."""
    name = path.name.encode("utf-8", "replace").decode()
    before = next((one for one in sent.files if one.number == number), ImportedFile(number, name, (Segment(0, now),)))
    if not checkpoint.rows or checkpoint.rows <= before.rows:
        return before
    return ImportedFile(number, name, before.segments, (checkpoint,))


def _agree(source: str, options: Mapping[str, str], manifests: Sequence[Manifest]) -> None:
    """Refuse options that read the rows of a known source differently."""
    for manifest in manifests:
        before = manifest.options
        names = sorted(name for name in before.keys() | options.keys() if before.get(name) != options.get(name))
        if names and any(file.rows for file in manifest.files):
            was, now = ({name: known.get(name, "not given") for name in names} for known in (before, options))
            raise OtherOptionsError(source, [f"{name} was {was[name]}, now {now[name]}" for name in names])
