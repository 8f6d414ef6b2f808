"""Archives of boards, as the lake has them. No JVM."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from domain.board_tables import BOARD_ARCHIVE_PLACES, BOARD_ARCHIVES
from domain.boards.archives import Archive, ArchivedPlace
from ingest.read_files import LakeFiles

_COLUMNS = [column for column in BOARD_ARCHIVES.column_names if column != "code_version"]


def archives(lake_root: Path) -> Mapping[str, Archive]:
    """Return the newest archive of each board by its name; none where nothing is archived.

    Raises:
        LakeUnreadableError: the table cannot be read.
    """
    with LakeFiles(lake_root) as files:
        sql = f"SELECT {', '.join(_COLUMNS)} FROM {files.pin(BOARD_ARCHIVES).scan()} ORDER BY rebuild, revision"  # noqa: S608
        found = [Archive(**dict(zip(_COLUMNS, row, strict=True))) for row in files.rows(sql)]
    return {one.name: one for one in found}


def archived_places(files: LakeFiles, archive: Archive) -> Sequence[ArchivedPlace]:
    """Return the players that are kept of a board, the best first.

    Raises:
        LakeUnreadableError: the table cannot be read.
    """
    sql = f"""SELECT player_id, score, epoch_us(reached_at) FROM {files.pin(BOARD_ARCHIVE_PLACES).scan()}
        WHERE game = $game AND board = $board AND revision = $revision ORDER BY rank"""  # noqa: S608
    which = {"game": archive.game, "board": archive.board, "revision": archive.revision}
    return [ArchivedPlace(*row) for row in files.rows(sql, which)]
