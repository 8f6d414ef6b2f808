"""Entries of boards from all events: the rules of `domain/boards/entries.py`, as joins and aggregates.

What a player's entry is does not depend on the order of scores, so it is an aggregate: the smallest sort key, or the
sum with the end of the last delta that is not 0. Which score of a match counts depends on the order of the log alone.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from domain.boards.definitions import Boards, Game
from domain.boards.sort_key import Mode
from domain.periods import Period, PeriodKind
from domain.windows import EPOCH

_US = timedelta(microseconds=1)
_LEAST, _MOST = -(2**63), 2**63 - 1
_MATCH = ("game", "match_id", "player_id")
_ENTRY = ("game", "board", "player_id")
ORDER: Final = ("game", "board", "is_banned", "score_order", "reached_us", "player_id")


def entries(
    scores: DataFrame, boards: Boards, *, logs: Sequence[str], only: Collection[str] = (), as_of_us: int
) -> DataFrame:
    """Return every player's entry on every board.

    Args:
        scores: bronze/scores.
        boards: Definitions; events of other games are left out.
        logs: Ids of all logs, in the order in which they were in use.
        only: Names of boards (`<game>|<period>`) that are wanted; empty = all.
        as_of_us: Bans that end by then have ended, microseconds since 1970 UTC.

    Returns:
        game, board, player_id, score, reached_us, zeros_alone, is_banned, and score_order, which is smaller for better
        scores.
    """
    events = scores.withColumn("place", _place(logs))
    counted = _by_board(_counted(events, boards), boards)
    if only:
        counted = counted.where(F.concat_ws("|", "game", "board").isin(*only))
    found = _aggregated(counted, boards).join(_banned(events, as_of_us), on="player_id", how="left")
    return found.withColumn("is_banned", F.coalesce("is_banned", F.lit(False)))


def members() -> Column:
    """Return what a row is on a board: the bytes of `domain.boards.sort_key.member`."""
    halves = [_big_endian(F.col(name)) for name in ("score_order", "reached_us")]
    return F.concat(F.unhex(F.concat(*halves)), F.encode("player_id", "UTF-8"))


def _big_endian(number: Column) -> Column:
    """Return 16 hex digits whose order is that of signed numbers."""
    return F.lpad(F.hex(number.bitwiseXOR(F.lit(_LEAST))), 16, "0")


def _place(logs: Sequence[str]) -> Column:
    """Return where an event stands among all of its player."""
    log = F.array_position(F.array(*map(F.lit, logs)), F.col("log_id"))
    return F.struct(log.alias("log"), "log_ms", "log_sequence", "log_index")


def _counted(events: DataFrame, boards: Boards) -> DataFrame:
    """Return the scores that count: the first of each match, unless it was removed, or is held and not approved."""
    of_games = events.where(F.col("game").isin(*boards.games))
    first = F.min(F.struct("place", "score", F.unix_micros("event_time").alias("ended_us"))).alias("first")
    matches = of_games.where("kind = 'score'").groupBy(*_MATCH).agg(first).select(*_MATCH, "first.*")
    approved = of_games.where("kind = 'approve'").groupBy(*_MATCH).agg(F.max("place").alias("approved"))
    removed = of_games.where("kind = 'remove'").select(*_MATCH).distinct()
    left = matches.join(removed, on=list(_MATCH), how="left_anti").join(approved, on=list(_MATCH), how="left")
    stands = F.coalesce(F.col("approved") > F.col("place"), F.lit(False))
    return left.where(~_by_game(boards, _is_held, F.lit(False)) | stands).drop("place", "approved")


def _is_held(game: Game) -> Column:
    if game.hold_above is None:
        return F.lit(False)
    score = F.col("score")
    return score < game.hold_above if game.mode is Mode.BEST_LOW else score > game.hold_above


def _by_board(counted: DataFrame, boards: Boards) -> DataFrame:
    """Return each score once for each board it belongs to."""
    ended = F.timestamp_micros("ended_us")
    year = F.lpad(F.extract(F.lit("YEAROFWEEK"), ended).cast("string"), 4, "0")
    week = F.lpad(F.weekofyear(ended).cast("string"), 2, "0")
    keys: Mapping[PeriodKind, Column] = {
        PeriodKind.ALL_TIME: F.lit(PeriodKind.ALL_TIME.value),
        PeriodKind.DAILY: F.concat(F.lit("daily:"), F.date_format(ended, "yyyy-MM-dd")),
        PeriodKind.WEEKLY: F.concat(F.lit("weekly:"), year, F.lit("-W"), week),
        PeriodKind.MONTHLY: F.concat(F.lit("monthly:"), F.date_format(ended, "yyyy-MM")),
    }

    def of_game(game: Game) -> Column:
        seasons = [F.when(_contains(season), F.lit(season.key)) for season in game.seasons]
        return F.array(*[keys[kind] for kind in game.kinds], *seasons)

    none = F.array().cast("array<string>")
    every = F.explode(_by_game(boards, of_game, none)).alias("board")
    return counted.select("game", "player_id", "score", "ended_us", every).where("board IS NOT NULL")


def _contains(season: Period) -> Column:
    bounds = [(at - EPOCH) // _US if at is not None else None for at in (season.start, season.end)]
    after = F.lit(True) if bounds[0] is None else F.col("ended_us") >= bounds[0]
    return after if bounds[1] is None else after & (F.col("ended_us") < bounds[1])


def _aggregated(counted: DataFrame, boards: Boards) -> DataFrame:
    """Return one entry for each player and board."""
    of_mode = {mode: [game.name for game in boards.games.values() if game.mode is mode] for mode in Mode}
    is_low, is_sum = (F.col("game").isin(*of_mode[mode]) for mode in (Mode.BEST_LOW, Mode.SUM))
    score, ended = F.col("score"), F.col("ended_us")
    order = F.when(is_low, score).otherwise(F.bitwise_not(score)).alias("score_order")
    found = counted.groupBy(*_ENTRY).agg(
        F.min(F.struct(order, "ended_us")).alias("best"),
        F.sum(score.cast("decimal(38,0)")).alias("total"),
        F.max(F.when(score != 0, ended)).alias("last_change"),
        F.min("ended_us").alias("first_zero"),
    )
    total = F.greatest(F.least("total", F.lit(Decimal(_MOST))), F.lit(Decimal(_LEAST))).cast("bigint")
    order = F.when(is_sum, F.bitwise_not(total)).otherwise(F.col("best.score_order"))
    best = F.when(is_low, F.col("best.score_order")).otherwise(F.bitwise_not(F.col("best.score_order")))
    return found.select(
        *_ENTRY,
        F.when(is_sum, total).otherwise(best).alias("score"),
        F.when(is_sum, F.coalesce("last_change", "first_zero")).otherwise(F.col("best.ended_us")).alias("reached_us"),
        (is_sum & F.col("last_change").isNull()).alias("zeros_alone"),
        order.alias("score_order"),
    )


def _banned(events: DataFrame, as_of_us: int) -> DataFrame:
    """Return the players whose last decision is a ban that goes on; one that was over when it came is none."""
    ends = F.unix_micros("until")
    decisions = events.where("kind IN ('ban', 'restore')").where(ends.isNull() | (ends > F.col("log_ms") * 1000))
    last = F.max(F.struct("place", "kind", ends.alias("ends"))).alias("last")
    found = decisions.groupBy("player_id").agg(last)
    goes_on = F.col("last.ends").isNull() | (F.col("last.ends") > as_of_us)
    return found.where((F.col("last.kind") == "ban") & goes_on).select("player_id", F.lit(True).alias("is_banned"))


def _by_game(boards: Boards, of_game: Callable[[Game], Column], otherwise: Column) -> Column:
    """Return what a column is by the game of the row."""

    def chained(chain: Column | None, game: Game) -> Column:
        is_this, found = F.col("game") == game.name, of_game(game)
        return F.when(is_this, found) if chain is None else chain.when(is_this, found)

    chain = reduce(chained, boards.games.values(), None)
    return otherwise if chain is None else chain.otherwise(otherwise)
