"""`lakeboard rebuild-board`, the part of Spark: boards counted again from all scores of the lake, and certified.

The certificates are the commit point: readers take the version of the entries that they name. A run that was killed
before them leaves entries that nobody reads.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import xor
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from domain.board_tables import BOARD_CERTIFICATES, BOARD_ENTRIES, BOARDS, SCORES
from domain.boards.certificates import WHOLE, Certificate, Certified, require_kept
from domain.boards.definitions import Boards, board_name
from domain.clock import Clock
from domain.errors import LakeboardError
from domain.position import LAKE_WRITER
from ingest.delta_log import app_transactions, newest_version
from ingest.lake_writer import create_tables
from ingest.read_certificates import certificates
from ingest.table_lock import locked
from jobs.board_ranks import certified, ranked
from jobs.lake import Lake
from pipelines.board_entries import entries
from pipelines.schemas import spark_schema

_LOCKS = tuple(table.name for table in BOARDS)
_MS_US = 1000


class NoScoresError(LakeboardError):
    """The lake has no scores yet."""

    def __str__(self) -> str:
        return "the lake has no scores yet: `lakeboard lake-writer`, a part of `lakeboard up`, brings those of the log"


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildRequest:
    """What to rebuild.

    Attributes:
        lake_root: Folder of the lake.
        boards: Definitions.
        clock: Tells now, UTC; stamps the certificates.
        code_version: Version of lakeboard, kept in them.
        log_id: Of the log in use, whose events come after those of others; None when it is not known.
        only: Game and period key of the one board to rebuild; None = all.
        force: Whether boards may lose players.
    """

    lake_root: Path
    boards: Boards
    clock: Clock
    code_version: str
    log_id: str | None = None
    only: tuple[str, str] | None = None
    force: bool = False


def run(
    spark: SparkSession,
    request: RebuildRequest,
    *,
    on_step: Callable[[str], None] = lambda step: None,
    on_wait: Callable[[str, str], None] | None = None,
) -> Sequence[Certificate]:
    """Count boards again and certify them; return the certificates, that of all boards first.

    Raises:
        NoScoresError: there is nothing to count.
        BoardShrankError: a board would lose too many players; nothing was committed.
    """
    if newest_version(request.lake_root / SCORES.name) < 0:
        raise NoScoresError
    with locked(request.lake_root, *_LOCKS, on_wait=on_wait):
        create_tables(request.lake_root, BOARDS)
        lake = Lake(spark, request.lake_root)
        try:
            return _rebuilt(lake, request, on_step)
        finally:
            lake.pace.restore()


def _rebuilt(lake: Lake, request: RebuildRequest, on_step: Callable[[str], None]) -> Sequence[Certificate]:
    on_step("read scores")
    files = lake.files(SCORES)
    lake.pace.suit(files.rows)
    scores = lake.part(files).frame
    on_step("count entries")
    order = lake.keep(_ranked(lake, scores, request))
    on_step("certify")
    found = lake.keep(certified(order))
    rows = [row.asDict() for row in found.collect()]
    old = list(certificates(request.lake_root))
    if not request.force:
        require_kept(_players(Certified.newest(old), request), {_name(row): _all(row) for row in rows})
    on_step("commit")
    _commit_entries(lake, order, request, note=f"rebuild of bronze/scores version {files.version}")
    made = _certificates(lake, request, rows, files.version, number=max((one.rebuild for one in old), default=0) + 1)
    schema = spark_schema(BOARD_CERTIFICATES)
    told = lake.frame([_row(one, request.code_version) for one in made], schema)
    lake.append(BOARD_CERTIFICATES, told, note=f"rebuild {made[0].rebuild}")
    return made


def _ranked(lake: Lake, scores: DataFrame, request: RebuildRequest) -> DataFrame:
    seen = scores.groupBy("log_id").agg(F.min("log_ms").alias("first"), F.max("log_ms").alias("last")).collect()
    logs = sorted(seen, key=lambda log: (log["log_id"] == request.log_id, log["first"], log["log_id"]))
    as_of_us = max((log["last"] for log in seen), default=0) * _MS_US
    only = () if request.only is None else (board_name(*request.only),)
    counted = entries(scores, request.boards, logs=[log["log_id"] for log in logs], only=only, as_of_us=as_of_us)
    return ranked(lake, counted)


def _commit_entries(lake: Lake, order: DataFrame, request: RebuildRequest, *, note: str) -> None:
    rows = order.withColumn("reached_at", F.timestamp_micros("reached_us"))
    where = None
    if request.only is not None:
        game, board = request.only
        where = f"game = '{game}' AND board = '{board}'"  # names of boards.toml: letters, digits, . _ - and the colon
    lake.overwrite(BOARD_ENTRIES, rows, where=where, note=note)


def _certificates(
    lake: Lake, request: RebuildRequest, rows: Sequence[Mapping[str, Any]], version: int, *, number: int
) -> Sequence[Certificate]:
    transactions = app_transactions(request.lake_root / SCORES.name, version)
    positions = {who.removeprefix(LAKE_WRITER): at for who, at in transactions.items() if who.startswith(LAKE_WRITER)}
    whole = {"game": WHOLE, "board": WHOLE, "players": sum(row["players"] for row in rows),
             "banned": sum(row["banned"] for row in rows),
             "digest": f"{reduce(xor, (int(row['digest'], 16) for row in rows), 0):016x}"}  # fmt: skip
    if request.only is not None and not rows:  # it has nobody: that is certified, too
        rows = [{"game": request.only[0], "board": request.only[1], "players": 0, "banned": 0, "digest": "0" * 16}]
    said = [whole, *rows] if request.only is None else rows
    return [
        Certificate(
            rebuild=number, created_at=request.clock(), scores_version=version,
            entries_version=lake.version(BOARD_ENTRIES), positions=positions, **one,
        )
        for one in sorted(said, key=lambda one: (one["game"] != WHOLE, one["game"], one["board"]))
    ]  # fmt: skip


def _row(one: Certificate, code_version: str) -> Mapping[str, Any]:
    said = {name: getattr(one, name) for name in BOARD_CERTIFICATES.column_names if name != "code_version"}
    return said | {"positions": json.dumps(dict(one.positions), sort_keys=True), "code_version": code_version}


def _players(before: Certified | None, request: RebuildRequest) -> Mapping[str, int]:
    """Return the players of the boards in force that are rebuilt."""
    boards = {} if before is None else before.boards
    wanted = boards.keys() if request.only is None else {board_name(*request.only)} & boards.keys()
    return {name: boards[name].players + boards[name].banned for name in wanted}


def _name(row: Mapping[str, Any]) -> str:
    return board_name(row["game"], row["board"])


def _all(row: Mapping[str, Any]) -> int:
    return int(row["players"] + row["banned"])
