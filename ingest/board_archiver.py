"""Archiving boards of periods that ended: the best of each, out of what a rebuild certified. No JVM.

Places are written before the row that names them, so a run that was killed leaves places that nobody reads; the next
one gives theirs another number.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from domain.board_tables import ARCHIVES, BOARD_ARCHIVE_PLACES, BOARD_ARCHIVES, BOARD_ENTRIES, SCORES
from domain.boards.archives import Archive, Due, due
from domain.boards.certificates import Certified
from domain.boards.definitions import Boards, board_name
from domain.clock import Clock
from domain.table import Table
from domain.windows import EPOCH
from ingest.arrow import arrow_schema
from ingest.durable import make_durable
from ingest.lake_writer import PARQUET, create_tables, log_read_to
from ingest.read_archives import archives
from ingest.read_certificates import certificates
from ingest.read_files import LakeFiles
from ingest.table_lock import locked

_ARCHIVE = "archive/"  # transactions: `archive/<game>|<board>` stands at the newest revision
_PLACES = pa.schema([("rank", pa.int64()), ("player_id", pa.string()), ("score", pa.int64()),
                     ("reached_at", pa.timestamp("us", "UTC"))])  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveRequest:
    """What to archive.

    Attributes:
        lake_root: Folder of the lake.
        boards: Definitions.
        clock: Tells now, UTC; stamps the archives.
        code_version: Version of lakeboard, kept in them.
    """

    lake_root: Path
    boards: Boards
    clock: Clock
    code_version: str


def archive(request: ArchiveRequest, *, on_wait: Callable[[str, str], None] | None = None) -> Sequence[Archive]:
    """Archive the boards that are due by what is certified; return what was written, nothing when all is kept.

    Whoever runs it and however often: a board is archived once as it is.

    Raises:
        LakeUnreadableError: the lake cannot be read.
    """
    root = request.lake_root
    with locked(root, *(table.name for table in ARCHIVES), on_wait=on_wait):
        create_tables(root, ARCHIVES)
        certified = Certified.newest(certificates(root))
        if certified is None:
            return []
        wanted = list(due(certified, request.boards, _counted_to(root, certified), archives(root)))
        return _written(request, wanted) if wanted else []


def _counted_to(lake_root: Path, certified: Certified) -> Mapping[int, datetime]:
    versions = {one.scores_version for one in (certified.whole, *certified.boards.values())}
    read_to = {version: log_read_to(lake_root, version, SCORES).values() for version in versions}
    return {version: min(found, default=EPOCH) for version, found in read_to.items()}


def _written(request: ArchiveRequest, wanted: Sequence[Due]) -> Sequence[Archive]:
    used = _used_revisions(request.lake_root)
    made, places = [], []
    with LakeFiles(request.lake_root) as files:
        for one in wanted:
            certificate = one.certificate
            revision = one.known.revision if one.known is not None else 0
            kept = 0 if one.known is None else one.known.places
            if one.is_restated:
                revision = max(used.get(certificate.name, 0), revision) + 1
                rows = _best(files, one)
                kept = rows.num_rows
                places.append(_of_board(rows, certificate.game, certificate.board, revision))
            made.append(Archive(
                game=certificate.game, board=certificate.board, revision=revision, archived_at=request.clock(),
                counted_to=one.counted_to, rebuild=certificate.rebuild, players=certificate.players, places=kept,
                digest=certificate.digest,
            ))  # fmt: skip
    if places:
        _append(request.lake_root, BOARD_ARCHIVE_PLACES, pa.concat_tables(places), {})
    rows_of = [{name: getattr(one, name, request.code_version) for name in BOARD_ARCHIVES.column_names} for one in made]
    told = pa.Table.from_pylist(rows_of, schema=arrow_schema(BOARD_ARCHIVES))
    _append(request.lake_root, BOARD_ARCHIVES, told, {f"{_ARCHIVE}{one.name}": one.revision for one in made})
    return made


def _used_revisions(lake_root: Path) -> Mapping[str, int]:
    """Return the highest revision of each board that has places, of runs that were killed too."""
    with LakeFiles(lake_root) as files:
        found = files.rows(
            f"SELECT game, board, max(revision) FROM {files.pin(BOARD_ARCHIVE_PLACES).scan()} GROUP BY ALL"  # noqa: S608
        )
    return {board_name(game, board): revision for game, board, revision in found}


def _best(files: LakeFiles, one: Due) -> pa.Table:
    certificate = one.certificate
    sql = f"""SELECT rank, player_id, score, reached_at
        FROM {files.pin(BOARD_ENTRIES, certificate.entries_version).scan()}
        WHERE game = $game AND board = $board AND rank <= $most ORDER BY rank"""  # noqa: S608
    which = {"game": certificate.game, "board": certificate.board, "most": one.game.archive_size}
    columns = list(zip(*files.rows(sql, which), strict=True)) or [()] * len(_PLACES)
    return pa.table([list(column) for column in columns], schema=_PLACES)


def _of_board(rows: pa.Table, game: str, board: str, revision: int) -> pa.Table:
    for name, value in (("game", game), ("board", board), ("revision", revision)):
        rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    return rows.select(BOARD_ARCHIVE_PLACES.column_names)


def _append(lake_root: Path, table: Table, rows: pa.Table, transactions: Mapping[str, int]) -> None:
    handle = DeltaTable(lake_root / table.name)
    properties = CommitProperties(app_transactions=[Transaction(name, at) for name, at in transactions.items()])
    write_deltalake(
        handle, rows.cast(arrow_schema(table)), mode="append", commit_properties=properties, writer_properties=PARQUET
    )
    make_durable(lake_root / table.name, [handle.version()])
