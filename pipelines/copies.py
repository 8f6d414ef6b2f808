"""Which of the events that share an id counts, and which are left out as copies of it."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from domain.events import COPY_REASONS, LeftOut
from domain.table import POSITION_COLUMNS
from domain.tables import LEFT_OUT
from pipelines.differences import differing_rows
from pipelines.schemas import conformed

_CARRIED = (
    "event_id",
    "id_hash",
    "payload_hash",
    *POSITION_COLUMNS,
    "item_id",
    "region",
    "count",
    "event_date",
    "event_hour",
)


def repeated_hashes(searched_plays: DataFrame, is_new: Column) -> DataFrame:
    """Return the `id_hash` values that more than one searched event has, at least one of them new.

    A hash only points at candidates: ids that merely collide are told apart by `copies_left_out`.

    Args:
        searched_plays: Rows of `bronze/plays` among which copies are sought.
        is_new: Holds for rows that no release has counted yet.
    """
    # The accelerator has no fast maximum of booleans: as an integer this took 6 s instead of 32 s of 24M ids.
    seen = searched_plays.groupBy("id_hash").agg(F.count("*").alias("events"), F.max(is_new.cast("int")).alias("new"))
    return seen.where("events > 1 AND new > 0").select("id_hash")


def copies_left_out(candidates: DataFrame, remembered: DataFrame) -> DataFrame:
    """Return a `silver/left_out` row for every event that loses to another one with its id.

    The winner is the event with the smallest (ingested_at, log_id, log_partition, log_ms, log_sequence, log_index).
    An event that was left out before stays out: the winner it lost to then takes part again through
    `remembered`, also when that winner lies beyond the dedup horizon and is no candidate.

    Args:
        candidates: Rows of `bronze/plays` that may be copies of each other.
        remembered: Rows of `silver/left_out` about these events, from the last release.
    """
    found = candidates.select(*_CARRIED).join(_winners_remembered(remembered), on=[*POSITION_COLUMNS], how="left")
    same_id = Window.partitionBy("event_id")
    own = F.struct(*POSITION_COLUMNS, "payload_hash")
    first = F.least(F.min(own).over(same_id), F.min("remembered_winner").over(same_id))
    judged = found.select(*_CARRIED, own.alias("own"), first.alias("winner"))
    losers = judged.where("own != winner").withColumn("reason", _copy_reason())
    winner = [F.col(f"winner.{name}").alias(f"winner_{name}") for name in (*POSITION_COLUMNS, "payload_hash")]
    return conformed(losers.select(*_CARRIED, "reason", *winner), LEFT_OUT)


def changed_copies(decided: DataFrame, remembered: DataFrame) -> DataFrame:
    """Return the (event_date, event_hour) in which a copy's row is new, gone or different.

    Args:
        decided: What `copies_left_out` says now.
        remembered: What the last release said about the same ids.
    """
    before = remembered.where(F.col("reason").isin(*COPY_REASONS))
    differing = differing_rows(before, decided, LEFT_OUT.column_names)
    return differing.select("event_date", "event_hour").distinct()


def _winners_remembered(remembered: DataFrame) -> DataFrame:
    winner = F.struct(*[F.col(f"winner_{name}").alias(name) for name in (*POSITION_COLUMNS, "payload_hash")])
    copies = remembered.where(F.col("reason").isin(*COPY_REASONS))
    return copies.select(*POSITION_COLUMNS, winner.alias("remembered_winner"))


def _copy_reason() -> Column:
    equal_payload = F.col("payload_hash") == F.col("winner.payload_hash")
    return F.when(equal_payload, LeftOut.DUPLICATE.value).otherwise(LeftOut.CONFLICT.value)
