"""Imports files into bronze, exactly once whatever is killed or repeated."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from domain.clock import Clock
from domain.errors import BadRequestError
from domain.policy import DEFAULT_POLICY, Policy
from ingest.importers.context import COMMIT_ROWS, Context
from ingest.importers.file_import import FileImport, Taken
from ingest.importers.held import Held, require_equal
from ingest.importers.ledger import Ledger
from ingest.importers.request import FileSummary, ImportRequest, ImportSummary, Progress
from ingest.importers.sources import SourceFile
from ingest.lake_writer import BronzeWriter
from ingest.local_time import LocalZone
from ingest.manifest import save_manifest, writer_id
from ingest.table_lock import locked
from ingest.times import stamp_reader


class NoFilesError(BadRequestError):
    """An import of nothing was asked for."""

    def __str__(self) -> str:
        return "there is nothing to import: name at least one file"


class IdsTwiceError(BadRequestError):
    """Both a column of ids and ids by content were asked for."""

    def __str__(self) -> str:
        return "--id and --dedup-by-content both say which rows are one event: give only one of them"


class MixedOptionsError(BadRequestError):
    """Files of one source would be read in different ways."""

    def __init__(self, source: str, first: str, other: str) -> None:
        super().__init__(source, first, other)
        self.source = source
        self.first = first
        self.other = other

    def __str__(self) -> str:
        return (
            f"{self.first} and {self.other} are of different kinds by their names, and both are for source "
            f"{self.source!r}: give --format and --delimiter, or import each with its own --source"
        )


def import_files(
    request: ImportRequest,
    *,
    lake_root: Path,
    clock: Clock,
    policy: Policy = DEFAULT_POLICY,
    on_progress: Callable[[Progress], None] = lambda _: None,
    on_step: Callable[[str], None] = lambda _: None,
    on_wait: Callable[[str, str], None] = lambda _name, _holder: None,
    commit_rows: int = COMMIT_ROWS,
) -> ImportSummary:
    """Import files into `bronze/plays` and `bronze/rejects`, and prove that the lake holds what was read.

    Running it again with the same files adds nothing; an import that was killed goes on where it stopped and
    ends with the same tables. Everything that can be asked wrongly is checked before the lake is touched.

    Args:
        request: Files and how to read them.
        lake_root: Folder of the lake; its bronze tables are created when they are not there.
        clock: Read once: rows that are new now get this as `ingested_at`.
        policy: How far in the future a time may be, among others.
        on_progress: Told every few thousand rows.
        on_step: Told the name of each step once it is on disk: `manifest`, `rejects`, `plays`, `finished`.
        on_wait: Told (what, holder) when another import of the same source is running, or a table is locked.
        commit_rows: Rows of a commit.

    Raises:
        BadRequestError: a file, column, option or name is wrong, or a source has other content or options.
        DamagedFileError: a file cannot be read to its end; what was read before it is in the lake.
        RowsDoNotAddUpError: the lake does not hold what was read.
        TableLockedError: another import of the same source took longer than an hour.
    """
    groups = files_by_source(request)
    writer = BronzeWriter(lake_root, on_wait=on_wait)
    stamp_reader(request.time_format)
    context = Context(
        request=request,
        lake_root=lake_root,
        writer=writer,
        held=Held(lake_root),
        keep=partial(save_manifest, lake_root),
        now=clock(),
        policy=policy,
        zone=LocalZone(request.time_zone, request.ambiguous),
        commit_rows=commit_rows,
        on_progress=on_progress,
        on_step=on_step,
    )
    writer.create()
    summaries: dict[Path, FileSummary] = {}
    for source, files in groups.items():
        with locked(lake_root, f"import/{source}", on_wait=on_wait):
            summaries |= import_source(context, source, files)
    return ImportSummary(tuple(summaries[path] for path in request.files))


def files_by_source(request: ImportRequest) -> dict[str, list[SourceFile]]:
    """Return the files of each source in order, each looked into to see that it can be read as asked.

    Raises:
        BadRequestError: one cannot.
    """
    if not request.files:
        raise NoFilesError
    if request.event_id is not None and request.dedup_by_content:
        raise IdsTwiceError
    groups: dict[str, list[SourceFile]] = {}
    for path in dict.fromkeys(request.files):
        source = request.source_of(path)
        group = groups.setdefault(source, [])
        group.append(SourceFile.of(path, request))
        if request.options(path) != request.options(group[0].path):
            raise MixedOptionsError(source, str(group[0].path), str(path))
        group[-1].check()
    return groups


def import_source(context: Context, source: str, files: Sequence[SourceFile]) -> dict[Path, FileSummary]:
    """Import the files of one source in order; the caller holds its lock.

    Raises what `import_files` raises.
    """
    ledger = Ledger(context, source)
    ledger.open([file.path for file in files])
    summaries = {file.path: _import_file(context, ledger, file) for file in files}
    repeated = context.held.repeated(source) if context.request.dedup_by_content else None
    if repeated is None:
        return summaries
    return {path: replace(one, repeated=repeated.get(one.number, 0)) for path, one in summaries.items()}


def _import_file(context: Context, ledger: Ledger, source_file: SourceFile) -> FileSummary:
    """Import one file and compare what the lake holds of it, counted in the tables, with what was read.

    Raises:
        RowsDoNotAddUpError: they differ.
    """
    assigned = ledger.assign(source_file)
    writer = writer_id(ledger.source, assigned.number)
    before = context.held.plays(writer)
    if assigned.is_complete:
        taken = Taken(read=assigned.rows, already=assigned.rows, accepted=0)
    else:
        taken = FileImport(context, ledger, source_file, assigned.number).run()
    plays = context.held.plays(writer)
    rejected = context.held.rejects(writer)
    require_equal(ledger.source, "rows accepted", expected=before + taken.accepted, found=plays)
    held = plays + rejected.total()
    require_equal(ledger.source, "rows accepted and rejected", expected=taken.read, found=held)
    return FileSummary(
        path=source_file.path,
        source=ledger.source,
        number=assigned.number,
        read=taken.read,
        accepted=plays,
        rejected_by_reason=rejected,
        already=taken.already,
        new_rows=taken.read - taken.already,
    )
