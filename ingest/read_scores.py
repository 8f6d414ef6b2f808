"""Scores and decisions as the lake has them, in the order of the log: what boards are made of again.

What a certified base has is left out, but for what has to be remembered of it: matches of the live window, and bans.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
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
_DAY_MS = 86_400_000
_KINDS = {kind.name.lower(): kind for kind in EventKind}
_COLUMNS = """log_id || '/' || log_partition AS source, log_ms, log_sequence, log_index, kind, game, player_id,
    match_id, score, epoch_us(event_time) AS event_us, fingerprint, coalesce(reason, '') AS reason,
    coalesce(epoch_us("until"), $never) AS until_us"""


@dataclass(frozen=True)
class ScoreHistory:
    """All that the lake has of boards, as of one version.

    Attributes:
        positions: Partition of the log in use -> `EntryId.version` of the last entry that is in it.
        events: Some events at a time with their source, `<log id>/<partition>`. Those of earlier logs first, then those
            of this one; each player's in the order of the log.
    """

    positions: Mapping[int, int]
    events: Iterator[tuple[str, Sequence[PlacedEvent]]]


def score_history(lake_root: Path, log_id: str, base: Mapping[str, int] | None = None) -> ScoreHistory:
    """Return what the lake has of boards.

    Args:
        lake_root: Folder of the lake.
        log_id: The log in use.
        base: Source -> version of the last entry that a base has: what it has is given only of the two days of the log
            before what it lacks, and bans. None = there is no base.

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
    return ScoreHistory(positions, _events(lake_root, version, log_id, base))


def _events(
    lake_root: Path, version: int, log_id: str, base: Mapping[str, int] | None
) -> Iterator[tuple[str, Sequence[PlacedEvent]]]:
    with LakeFiles(lake_root) as files, _explained():
        scores = files.pin(SCORES, version).scan()
        said = {"log": log_id, "never": NOT_SAID, "since": _since(files, scores, base)}
        wanted = "log_ms >= $since OR kind IN ('ban', 'restore')"
        sql = f"""WITH scores AS {scores}, logs AS (SELECT log_id, min(log_ms) AS log_began FROM scores GROUP BY ALL)
            SELECT {_COLUMNS} FROM scores JOIN logs USING (log_id) WHERE {wanted}
            ORDER BY log_id = $log, log_began, log_id, log_partition, log_ms, log_sequence, log_index"""  # noqa: S608
        found = files.connection.sql(sql, params=said).to_arrow_reader(_ROWS)
        for rows in cast(Iterator[pa.RecordBatch], found):
            for source, some in groupby(_placed(rows), key=itemgetter(0)):
                yield source, [placed for _, placed in some]


def _since(files: LakeFiles, scores: str, base: Mapping[str, int] | None) -> int:
    """Return from when on events are given: two days of the log before the first that the base lacks."""
    if base is None:
        return 0
    lacked = f"""SELECT coalesce(min(log_ms), (SELECT max(log_ms) FROM {scores}), 0) FROM {scores} scores
        LEFT JOIN (SELECT unnest($source) AS source, unnest($ms) AS ms, unnest($sequence) AS sequence) base
        ON scores.log_id || '/' || scores.log_partition = base.source
        WHERE log_ms > coalesce(ms, -1) OR (log_ms = ms AND log_sequence > sequence)"""  # noqa: S608
    entries = [EntryId.of_version(at) for at in base.values()]
    said = {"source": list(base), "ms": [at.ms for at in entries], "sequence": [at.sequence for at in entries]}
    ((first,),) = files.rows(lacked, said)
    return int(first // _DAY_MS - 1) * _DAY_MS


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        raise LakeUnreadableError(SCORES.name, first_line(error)) from error


def _placed(rows: pa.RecordBatch) -> Iterator[tuple[str, PlacedEvent]]:
    columns = [rows.column(number).to_pylist() for number in range(rows.num_columns)]
    for source, ms, sequence, index, kind, *said in zip(*columns, strict=True):
        event = BoardEvent(_KINDS[kind], *said)
        yield source, PlacedEvent(Position(EntryId(ms, sequence).version, index), ms * _MS_US, event)
