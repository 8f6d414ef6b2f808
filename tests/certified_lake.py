"""A lake with certified boards for tests, written as a rebuild leaves it, without Spark."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zlib import crc32

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from domain.board_tables import BOARD_CERTIFICATES, BOARD_ENTRIES, SCORES
from domain.boards.certificates import WHOLE
from domain.position import LOG_IN_USE, READ_TO
from domain.table import Table
from domain.windows import EPOCH, milliseconds
from ingest.arrow import arrow_schema
from ingest.lake_writer import create_tables

Players = Sequence[tuple[str, int, datetime]]  # id, score, reached at; the best first
LOG = "log-0"
PARTITIONS = 3


@dataclass
class CertifiedLake:
    """Certifies what it is told."""

    root: Path
    rebuild: int = 0

    def read_to(self, moment: datetime) -> None:
        """Say up to when the lake has all scores."""
        marks = {f"{READ_TO}{LOG}/{number}": milliseconds(moment) for number in range(PARTITIONS)}
        marks[f"{LOG_IN_USE}{LOG}"] = 1
        self._write(SCORES, [], "append", marks)

    def certify(self, boards: Mapping[tuple[str, str], Players], *, now: datetime = EPOCH) -> int:
        """Make a rebuild of all boards; return its number."""
        self.rebuild += 1
        create_tables(self.root, (SCORES, BOARD_ENTRIES, BOARD_CERTIFICATES))
        entries = [
            {"game": game, "board": board, "player_id": player, "score": score, "reached_at": reached,
             "zeros_alone": False, "rank": rank}
            for (game, board), players in boards.items()
            for rank, (player, score, reached) in enumerate(players, start=1)
        ]  # fmt: skip
        self._write(BOARD_ENTRIES, entries, "overwrite", {})
        versions = {name: DeltaTable(self.root / table.name).version()
                    for name, table in (("scores_version", SCORES), ("entries_version", BOARD_ENTRIES))}  # fmt: skip
        same = {"rebuild": self.rebuild, "created_at": now, "positions": json.dumps({}), "banned": 0,
                "code_version": "1", **versions}  # fmt: skip
        rows = [
            {"game": game, "board": board, "players": len(players), "digest": f"{crc32(repr(players).encode()):016x}"}
            for (game, board), players in boards.items()
        ]
        whole = {"game": WHOLE, "board": WHOLE, "players": len(entries), "digest": "f" * 16}
        self._write(BOARD_CERTIFICATES, [same | one for one in (whole, *rows)], "append", {})
        return self.rebuild

    def _write(self, table: Table, rows: Sequence[Mapping[str, object]], mode: str, marks: Mapping[str, int]) -> None:
        create_tables(self.root, (table,))
        write_deltalake(
            self.root / table.name, pa.Table.from_pylist(list(rows), schema=arrow_schema(table)),
            mode="append" if mode == "append" else "overwrite",
            commit_properties=CommitProperties(app_transactions=[Transaction(*one) for one in marks.items()]),
        )  # fmt: skip
