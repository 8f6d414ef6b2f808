"""Scores and decisions as the lake has them, in the order of the log: what boards are made of again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import duckdb
import pyarrow as pa

from domain.board_tables import SCORES
from domain.boards.events import NOT_SAID, BoardEvent, EventKind, PlacedEvent, Position
from domain.log import EntryId
from domain.position import LAKE_WRITER
from ingest.delta_log import app_transactions, newest_version
from ingest.read_files import LakeFiles, LakeUnreadableError, first_line

_ROWS = 20_000  # of a record batch
_MS_US = 1000
_KINDS = {kind.name.lower(): kind for kind in EventKind}
_COLUMNS = """log_ms, log_sequence, log_index, kind, game, player_id, match_id, score, epoch_us(event_time) AS event_us,
    fingerprint, coalesce(reason, '') AS reason, coalesce(epoch_us("until"), $never) AS until_us"""


@dataclass(frozen=True)
class ScoreHistory:
    """All that the lake has of boards, as of one version.

    Attributes:
        positions: Partition of the log in use -> `EntryId.version` of the last entry that is in it.
        events: Those of earlier logs first, then those of this one; each player's in the order of the log.
    """

    positions: Mapping[int, int]
    events: Iterator[Sequence[PlacedEvent]]


def score_history(lake_root: Path, log_id: str) -> ScoreHistory:
    """Return what the lake has of boards.

    Args:
        lake_root: Folder of the lake.
        log_id: The log in use.

    Raises:
        LakeUnreadableError: the table cannot be read; while events are taken, too.
    """
    version = newest_version(lake_root / SCORES.name)
    if version < 0:
        return ScoreHistory({}, iter(()))
    try:
        transactions = app_transactions(lake_root / SCORES.name, version)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise LakeUnreadableError(SCORES.name, first_line(error)) from error
    prefix = f"{LAKE_WRITER}{log_id}/"
    positions = {int(who.removeprefix(prefix)): at for who, at in transactions.items() if who.startswith(prefix)}
    return ScoreHistory(positions, _events(lake_root, version, log_id))


def _events(lake_root: Path, version: int, log_id: str) -> Iterator[Sequence[PlacedEvent]]:
    """Yield some events at a time: a player is in one partition of a log, and a later log has later times."""
    with LakeFiles(lake_root) as files:
        sql = f"""SELECT {_COLUMNS} FROM {files.pin(SCORES, version).scan()}
            ORDER BY log_id = $log, log_ms, log_partition, log_sequence, log_index"""  # noqa: S608
        try:
            found = files.connection.sql(sql, params={"log": log_id, "never": NOT_SAID}).to_arrow_reader(_ROWS)
            for rows in cast(Iterator[pa.RecordBatch], found):
                yield _placed(rows)
        except duckdb.Error as error:
            raise LakeUnreadableError(SCORES.name, first_line(error)) from error


def _placed(rows: pa.RecordBatch) -> Sequence[PlacedEvent]:
    columns = [rows.column(number).to_pylist() for number in range(rows.num_columns)]
    found = []
    for ms, sequence, index, kind, game, player, match, score, ended, mark, reason, until in zip(*columns, strict=True):
        event = BoardEvent(_KINDS[kind], game, player, match, score, ended, mark, reason, until)
        found.append(PlacedEvent(Position(EntryId(ms, sequence).version, index), ms * _MS_US, event))
    return found
