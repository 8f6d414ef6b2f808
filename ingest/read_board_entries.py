"""Boards as the last rebuilds certified them, player by player: what the views server is filled with. No JVM."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple, cast

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from domain.board_tables import BOARD_ENTRIES
from domain.boards.archives import Archive, is_settled
from domain.boards.certificates import Certificate, Certified
from domain.boards.definitions import Boards, Game
from domain.boards.entries import ZEROS_ALONE
from domain.boards.sort_key import KEY_BYTES, Mode
from domain.errors import LakeboardError
from domain.periods import period_named
from ingest.read_archives import archives
from ingest.read_certificates import certificates
from ingest.read_files import LakeFiles, LakeUnreadableError, first_line

_ROWS: Final = 50_000  # of a record batch
_TOP: Final = np.uint64(2**63)
_RANK: Final = Struct("<q")
_SPARK_SEED: Final = 42  # of `xxhash64`


class NotAsCertifiedError(LakeboardError):
    """The players of a board are not those that its certificate speaks of."""

    def __init__(self, board: str, what: str) -> None:
        super().__init__(board, what)
        self.board = board
        self.what = what

    def __str__(self) -> str:
        return (
            f"{BOARD_ENTRIES.name} has other players of {self.board} than were certified ({self.what}): it was not "
            "loaded; `lakeboard rebuild-board --all` makes it anew from bronze/scores"
        )


class BaseRows(NamedTuple):
    """Some players of a board.

    Attributes:
        players: Ids, those of ranked players in the order of the board.
        entries: Of each, as of `domain.boards.entries`.
        banned: Whether they live on out of sight; of all of them.
    """

    players: Sequence[str]
    entries: Sequence[bytes]
    banned: bool


@dataclass(frozen=True)
class CertifiedBase:
    """What is certified of the boards that can still change.

    Attributes:
        lake_root: Folder of the lake.
        boards: Their certificates.
        modes: Of each board.
        certified: All certificates in force.
    """

    lake_root: Path
    boards: Sequence[Certificate]
    modes: Mapping[str, Mode]
    certified: Certified

    @property
    def positions(self) -> Mapping[str, int]:
        """Up to where the base has every event: source -> version of the last entry."""
        return self.certified.positions()

    def has(self, board: str, source: str, version: int) -> bool:
        """Say whether what an entry of the log brought is in the base of a board."""
        return self.certified.has(board, source, version)

    def rows(self, board: Certificate) -> Iterator[BaseRows]:
        """Yield all players, the banned ones last.

        Raises:
            NotAsCertifiedError: at the end, when these are not the players that were certified.
            LakeUnreadableError: the table cannot be read.
        """
        found, told = 0, [0, 0]
        for rows in self._read(board):
            yield rows
            told[rows.banned] += len(rows.players)
            if not rows.banned:
                found ^= _digest(rows, told[0] - len(rows.players))
        if told != [board.players, board.banned] or found != int(board.digest, 16):
            what = f"{told[0]:,} ranked, {told[1]:,} banned, digest {found:016x}"
            raise NotAsCertifiedError(board.name, what)

    def _read(self, board: Certificate) -> Iterator[BaseRows]:
        with LakeFiles(self.lake_root) as files:
            sql = f"""SELECT player_id, score, epoch_us(reached_at) AS reached_us, zeros_alone
                FROM {files.pin(BOARD_ENTRIES, board.entries_version).scan()}
                WHERE game = $game AND board = $board AND (rank IS NULL) = $banned ORDER BY rank"""  # noqa: S608
            for banned in (False, True):
                said = {"game": board.game, "board": board.board, "banned": banned}
                try:
                    reader = files.connection.sql(sql, params=said).to_arrow_reader(_ROWS)
                    for batch in cast(Iterator[pa.RecordBatch], reader):
                        yield BaseRows(batch.column(0).to_pylist(), _entries(batch, self.modes[board.name]), banned)
                except duckdb.Error as error:
                    raise LakeUnreadableError(BOARD_ENTRIES.name, first_line(error)) from error


def certified_base(lake_root: Path, boards: Boards, now: datetime) -> CertifiedBase | None:
    """Return what is certified of boards that are live; None before all were rebuilt once.

    Those are the boards to which scores can still come live, and those that are not archived with all of theirs.

    Args:
        lake_root: Folder of the lake.
        boards: Definitions.
        now: The present moment, UTC.

    Raises:
        LakeUnreadableError: the certificates cannot be read.
    """
    certified = Certified.newest(certificates(lake_root))
    if certified is None:
        return None
    games = {one.name: boards.games.get(one.game) for one in certified.boards.values()}
    kept = archives(lake_root)
    live = [
        one
        for one in certified.boards.values()
        if (game := games[one.name]) is not None
        and (_is_open(game, one.board, now) or not _is_kept(kept.get(one.name), boards))
    ]
    modes = {name: game.mode for name, game in games.items() if game is not None}
    return CertifiedBase(lake_root, live, modes, certified)


def _is_open(game: Game, board: str, now: datetime) -> bool:
    period = period_named(board, game.seasons)
    if period is None:
        return False
    until = game.live_until(period)
    return until is None or now < until


def _is_kept(archive: Archive | None, boards: Boards) -> bool:
    return archive is not None and is_settled(archive, boards)


def _entries(batch: pa.RecordBatch, mode: Mode) -> Sequence[bytes]:
    score, reached = (_numbers(batch, column) for column in (1, 2))
    keys = np.empty((len(batch), 2), dtype=">u8")
    keys[:, 0] = (score if mode is Mode.BEST_LOW else ~score).view(np.uint64) ^ _TOP
    keys[:, 1] = reached.view(np.uint64) ^ _TOP
    told = keys.tobytes()
    zeros = batch.column(3).to_pylist()
    return [
        told[start : start + KEY_BYTES] + (ZEROS_ALONE if alone else b"")
        for start, alone in zip(range(0, len(told), KEY_BYTES), zeros, strict=True)
    ]


def _numbers(batch: pa.RecordBatch, column: int) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = batch.column(column).to_numpy()
    return found


def _digest(rows: BaseRows, before: int) -> int:
    """Return the digest of some players as Spark makes it: xxh64 of the rank, seeded by that of the member, all xored.

    Args:
        rows: Ranked ones.
        before: How many stand before the first of them.
    """
    found, hashed = 0, xxhash.xxh64_intdigest
    for rank, (player, entry) in enumerate(zip(rows.players, rows.entries, strict=True), start=before + 1):
        found ^= hashed(_RANK.pack(rank), hashed(entry[:KEY_BYTES] + player.encode(), _SPARK_SEED))
    return found
