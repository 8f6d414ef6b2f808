"""Ranks of boards of any size: no step has all players of a board in one task."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.lake import Lake
from pipelines.board_entries import ORDER, members

_ROW_BITS = 33  # of `monotonically_increasing_id`; the bits above are the number of the partition
_RUNS: Final = T.StructType([
    T.StructField("game", T.StringType()),
    T.StructField("board", T.StringType()),
    T.StructField("is_banned", T.BooleanType()),
    T.StructField("part", T.LongType()),
    T.StructField("behind", T.LongType()),
])  # fmt: skip
_BOARD = ["game", "board", "is_banned"]


def ranked(lake: Lake, entries: DataFrame) -> DataFrame:
    """Return entries in their order with `rank` from 1, NULL of banned players.

    They are sorted over all tasks once; a rank then is a row's number in its task and how many stand in tasks before.

    Args:
        lake: Keeps what is sorted.
        entries: As of `pipelines.board_entries.entries`.
    """
    in_order = entries.repartitionByRange(*ORDER).sortWithinPartitions(*ORDER)
    kept = lake.keep(in_order.withColumn("row", F.monotonically_increasing_id()))
    kept = kept.withColumn("part", F.shiftright("row", _ROW_BITS))
    runs = kept.groupBy(*_BOARD, "part").agg(F.min("row").alias("first"), F.count("*").alias("players")).collect()
    numbered = lake.frame(list(_behind(runs)), _RUNS)
    rank = F.when(~F.col("is_banned"), F.col("row") - F.col("behind"))
    return kept.join(F.broadcast(numbered), on=[*_BOARD, "part"], how="left").withColumn("rank", rank)


def certified(ranks: DataFrame) -> DataFrame:
    """Return of each board how many players it has, how many are banned, and the digest of its order."""
    hashed = F.when(~F.col("is_banned"), F.xxhash64(members(), F.col("rank")))
    return ranks.groupBy("game", "board").agg(
        F.count("rank").alias("players"),
        F.count_if(F.col("is_banned")).alias("banned"),
        F.lower(F.lpad(F.hex(F.coalesce(F.bit_xor(hashed), F.lit(0))), 16, "0")).alias("digest"),
    )


def _behind(runs: list[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield of each run of a board's rows in a task what is to be taken from row numbers to get ranks."""
    by_board = sorted(runs, key=lambda run: (run["game"], run["board"], run["is_banned"], run["part"]))
    for (game, board, is_banned), some in groupby(by_board, key=lambda run: tuple(run[name] for name in _BOARD)):
        before = 0
        for run in some:
            behind = run["first"] - before - 1
            yield {"game": game, "board": board, "is_banned": is_banned, "part": run["part"], "behind": behind}
            before += run["players"]
