"""What rebuilds certified, as the lake has it. No JVM."""

import json
from collections.abc import Sequence
from pathlib import Path

from domain.board_tables import BOARD_CERTIFICATES
from domain.boards.certificates import Certificate
from ingest.read_files import LakeFiles

_COLUMNS = [column for column in BOARD_CERTIFICATES.column_names if column != "code_version"]


def certificates(lake_root: Path) -> Sequence[Certificate]:
    """Return all certificates, those of the oldest rebuild first; none where no board was rebuilt.

    Raises:
        LakeUnreadableError: the table cannot be read.
    """
    with LakeFiles(lake_root) as files:
        table = files.pin(BOARD_CERTIFICATES)
        sql = f"SELECT {', '.join(_COLUMNS)} FROM {table.scan()} ORDER BY rebuild, game, board"  # noqa: S608
        found = [dict(zip(_COLUMNS, row, strict=True)) for row in files.rows(sql)]
    return [Certificate(**row | {"positions": json.loads(row["positions"])}) for row in found]
