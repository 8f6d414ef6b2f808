"""Building a generation of all boards: what is certified, then what the lake has beyond it; the log goes on from there.

The same for boards that were lost, which nobody reads until they are whole, and for a rebuild beside live ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from domain.boards.events import PlacedEvent, Position
from domain.boards.sort_key import KEY_BYTES, member
from speed_layer.boards.deciding import InBase, Outcome, decide, nowhere, touched
from speed_layer.boards.job import Base, BoardsJob, Rows, steps
from speed_layer.store.boards.base import BaseLoader
from speed_layer.store.boards.writer import WHOLE, Applied, BoardWriter, day_of

_REPORTED = 200_000  # events or players


def source_of(job: BoardsJob, log_id: str) -> str:
    """Return what boards are made of, and how they are split: with another one they begin anew."""
    return f"{log_id}/{job.shards}"


class Move(NamedTuple):
    """From where to where a partition is applied; None = nothing of it is."""

    partition: int
    before: Applied | None
    after: Applied | None


def apply_events(
    job: BoardsJob,
    writer: BoardWriter,
    log_id: str,
    events: Sequence[PlacedEvent],
    move: Move,
    *,
    as_of_ms: int,
    in_base: InBase = nowhere,
) -> Sequence[Outcome]:
    """Decide on events of one day of the log and apply what follows, with the position behind them.

    Raises:
        BoardsMovedError: somebody else has gone on meanwhile; nothing was changed.
    """
    day = day_of(events) if events else 0
    known = writer.known(touched(job.boards, events), day=day)
    changes = decide(job.boards, known, events, in_base=in_base)
    source = source_of(job, log_id)
    writer.apply(source, move.partition, changes, before=move.before, after=move.after, as_of_ms=as_of_ms, day=day)
    return changes.outcomes


def build(job: BoardsJob, writers: Sequence[BoardWriter], log_id: str, partitions: int) -> Mapping[int, Applied]:
    """Fill new generations; return up to where each partition of the log is applied.

    Args:
        job: Gives base and history; told how far it is.
        writers: Of the generations, one for each shard in their order; they have been begun.
        log_id: Of the log in use.
        partitions: How many it has for scores.

    Raises:
        BoardsMovedError: somebody else writes these generations.
        LakeboardError: the lake cannot be read, or is not as certified.
    """
    base = job.base()
    if base is not None:
        _load(job, base, writers, partitions)
    history = job.history(log_id, None if base is None else base.positions)
    done, day = 0, 0
    for source, events in history.events:
        for step in steps(events, partial(_shard_of, job, partitions)):
            shard = _shard_of(job, partitions, step[0])
            in_base = _in_base(base, source)
            apply_events(job, writers[shard], log_id, step, Move(0, None, None), as_of_ms=0, in_base=in_base)
        if day_of(events) > day:
            for writer in writers:
                writer.drop_ledger_before(day_of(events))
        day = day_of(events)
        done += len(events)
        job.report({"events_of_the_lake": done})
    applied = {number: Applied(version, WHOLE, version) for number, version in history.positions.items()}
    for number, after in applied.items():
        apply_events(job, writers[number % job.shards], log_id, (), Move(number, None, after), as_of_ms=0)
    return applied


def _shard_of(job: BoardsJob, partitions: int, placed: PlacedEvent) -> int:
    return job.partition_of(placed.event.player_id, partitions) % job.shards


def _in_base(base: Base | None, source: str) -> InBase:
    if base is None:
        return nowhere

    def has(board: str, position: Position) -> bool:
        return base.has(board, source, position.version)

    return has


def _load(job: BoardsJob, base: Base, writers: Sequence[BoardWriter], partitions: int) -> None:
    done, told = 0, 0
    for board in base.boards:
        loaders = [
            BaseLoader(writer.views, writer.shard, writer.generation, board.name, board.rebuild,
                       board.players // job.shards)
            for writer in writers
        ]  # fmt: skip
        for rows in base.rows(board):
            for loader, players, entries in _by_shard(job, rows, loaders, partitions):
                if rows.banned:
                    loader.banned(players, entries)
                else:
                    members = [member(e[:KEY_BYTES], p) for p, e in zip(players, entries, strict=True)]
                    loader.add(players, entries, members)
            done += len(rows.players)
            if done >= told:
                job.report({"players_of_the_base": done, "board": board.name})
                told = done + _REPORTED
        for loader in loaders:
            loader.finish()
    for writer in writers:
        writer.state()  # the boards that it has now


def _by_shard(
    job: BoardsJob, rows: Rows, loaders: Sequence[BaseLoader], partitions: int
) -> Iterator[tuple[BaseLoader, Sequence[str], Sequence[bytes]]]:
    if job.shards == 1:
        yield loaders[0], rows.players, rows.entries
        return
    shards = [job.partition_of(player, partitions) % job.shards for player in rows.players]
    for shard, loader in enumerate(loaders):
        mine = [n for n, one in enumerate(shards) if one == shard]
        yield loader, [rows.players[n] for n in mine], [rows.entries[n] for n in mine]
