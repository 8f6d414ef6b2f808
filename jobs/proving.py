"""Runs the proofs over staged frames: all of them must hold before anything is committed."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import reduce

from pyspark.sql import DataFrame

from domain.errors import LakeboardError
from domain.tables import HOURLY_COUNTS
from jobs.plan import Plan
from jobs.staging import Staged
from pipelines import proofs

SHOWN = 20


@dataclass(frozen=True, slots=True)
class Contradiction:
    """One row that contradicts a proof; `event_hour` is None where a day fails."""

    proof: str
    table: str
    event_date: date | None
    event_hour: int | None
    detail: str


class ProofFailedError(LakeboardError):
    """A recount's numbers contradict each other; nothing was committed."""

    def __init__(self, contradictions: Sequence[Contradiction]) -> None:
        super().__init__(contradictions)
        self.contradictions = contradictions

    def __str__(self) -> str:
        failed = Counter((c.proof, c.table) for c in self.contradictions)
        named = "; ".join(f"{proof} on {table}: {n} rows" for (proof, table), n in sorted(failed.items()))
        shown = "\n".join(
            f"  {c.proof} {c.event_date} hour {c.event_hour}: {c.detail}" for c in self.contradictions[:SHOWN]
        )
        return (
            f"the proofs failed ({named}), so nothing was committed and the last release stays current; "
            f"run `lakeboard verify` to look at the lake, then `lakeboard recount --full`\n{shown}"
        )


def prove(staged: Staged, plan: Plan) -> Mapping[str, str]:
    """Return proof -> what was compared, when all of them hold.

    Raises:
        ProofFailedError: with up to 1,000 contradicting rows.
    """
    size = plan.policy.chart_size
    checks: dict[str, DataFrame] = {
        "counts_balance": proofs.counts_balance(staged.hourly),
        "left_out_is_booked": proofs.left_out_is_booked(staged.hourly, staged.left_out),
        "each_id_counts_once": proofs.each_id_counts_once(staged.candidates, staged.decided),
        "hours_sum_to_days": proofs.hours_sum_to_days(staged.hours_of_days, staged.daily),
        "charts_sort_the_counts": proofs.charts_sort_the_counts(staged.charts, staged.windowed, size=size),
        "regions_sum_to_everywhere": proofs.regions_sum_to_everywhere(staged.charts),
        "charts_total_the_counts": proofs.charts_total_the_counts(staged.charts, staged.counts),
    }
    grown = proofs.received_growth(staged.old_hourly, staged.hourly)
    # One query for all: a second one would cost more than a small recount's rows.
    said = reduce(DataFrame.unionAll, checks.values()).limit(1000).unionAll(grown).collect()
    contradictions = [Contradiction(**row.asDict()) for row in said if row["proof"] != proofs.GROWTH]
    growth = next(json.loads(row["detail"])["growth"] for row in said if row["proof"] == proofs.GROWTH)
    if not growth == staged.new_rows == plan.new_events:
        detail = (
            f"the files of bronze grew by {plan.new_events} events, "
            f"its writers' positions say {staged.new_rows} are new, and the hours grew by {growth}"
        )
        contradictions.append(Contradiction(proofs.GROWTH, HOURLY_COUNTS.name, None, None, detail))
    if contradictions:
        raise ProofFailedError(contradictions)
    return {name: "holds" for name in checks} | {proofs.GROWTH: f"{growth} events"}
