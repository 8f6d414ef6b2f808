"""`lakeboard recount`: count what is new in bronze, prove it, and release it.

A release is the commit point of all derived tables together: readers see only the table versions it names. A run
that was killed before its release leaves newer table versions behind; the next run first brings those tables back
to the last release and then counts again, so every run starts from a released state.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from deltalake.exceptions import DeltaError
from pyspark.sql import DataFrame, SparkSession

from domain.clock import Clock
from domain.errors import LakeboardError
from domain.frontier import certifiable_end
from domain.policy import DEFAULT_POLICY, Policy
from domain.position import BronzePosition
from domain.releases import Release, counted_position
from domain.rules import Rules
from domain.table import Table
from domain.tables import (
    CHART_HISTORY,
    CHARTS,
    DAILY_COUNTS,
    DERIVED,
    HOURLY_COUNTS,
    HOURS,
    LEFT_OUT,
    PLAYS,
    RELEASES,
    RESTATEMENTS,
)
from ingest.delta_log import newest_version
from ingest.lake_reader import newest_release
from ingest.lake_writer import bronze_position, create_tables, empty_version, log_read_to
from ingest.read_files import LakeUnreadableError, first_line
from ingest.table_lock import locked
from jobs.lake import Commit, Lake
from jobs.plan import Plan, certifying_hours
from jobs.proving import prove
from jobs.staging import Staged, Stager
from pipelines.hours import NO_ROWS, Folders
from pipelines.schemas import spark_schema

DERIVED_LOCKS = (RELEASES.name, *(table.name for table in DERIVED))


class NothingImportedError(LakeboardError):
    """There is no bronze yet."""

    def __str__(self) -> str:
        return "there is nothing to count yet: run `lakeboard import FILE` first"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecountRequest:
    """What to count and how.

    Attributes:
        lake_root: Folder of the lake.
        rules: Counting rules in force.
        clock: Tells now, UTC; bounds the frontier and stamps the release.
        code_version: Version of lakeboard, kept in the release.
        policy: Horizon, grace, chart size.
        full: Judge every event again from bronze alone, without the dedup horizon.
        cause: What the restatements and the release say as cause, instead of the one we find.
    """

    lake_root: Path
    rules: Rules
    clock: Clock
    code_version: str
    policy: Policy = DEFAULT_POLICY
    full: bool = False
    cause: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecountReport:
    """What a recount did. `release` is the current one; `is_new` says whether this run made it."""

    release: Release
    is_new: bool
    new_events: int
    commits: Mapping[str, Commit] = field(default_factory=dict)


def nothing_new(request: RecountRequest) -> RecountReport | None:
    """Return the current release when a recount would not change anything; costs no Spark.

    Raises:
        NothingImportedError: bronze does not exist.
        PositionWentBackError: bronze lost commits that were already counted.
    """
    if newest_version(request.lake_root / PLAYS.name) < 0:
        raise NothingImportedError
    newest = newest_release(request.lake_root)
    if newest is None:
        return None
    return None if _is_needed(_plan(request, newest), newest) else _unchanged(newest)


def run(
    spark: SparkSession,
    request: RecountRequest,
    *,
    on_step: Callable[[str], None] = lambda step: None,
    on_wait: Callable[[str, str], None] | None = None,
) -> RecountReport:
    """Recount the lake. Running twice is the same as running once.

    Args:
        spark: A session with Delta.
        request: What to count.
        on_step: Told the name of each step as it begins.
        on_wait: Told (table, holder) when another process holds a lock.

    Raises:
        NothingImportedError: bronze does not exist.
        PositionWentBackError: bronze lost commits that were already counted.
        ProofFailedError: nothing was committed.
    """
    if newest_version(request.lake_root / PLAYS.name) < 0:
        raise NothingImportedError
    with locked(request.lake_root, *DERIVED_LOCKS, on_wait=on_wait):
        on_step("open the lake")
        create_tables(request.lake_root, (*DERIVED, RELEASES))
        lake = Lake(spark, request.lake_root)
        newest = newest_release(request.lake_root)
        try:
            roll_back(lake, newest)
            plan = _plan(request, newest)
            if newest is not None and not _is_needed(plan, newest):
                return _unchanged(newest)
            return _release(lake, plan, request, on_step)
        finally:
            lake.pace.restore()


def roll_back(lake: Lake, newest: Release | None) -> list[str]:
    """Bring tables that a killed run left ahead of the last release back to it; return their names.

    A table that the release does not name was added to lakeboard later: for that release it is empty.
    """
    ahead = []
    named = {} if newest is None else newest.table_versions
    for table in DERIVED:
        released = named.get(table.name, empty_version(table))
        if lake.version(table) != released:
            lake.restore(table, released)
            ahead.append(table.name)
    return ahead


def _plan(request: RecountRequest, newest: Release | None) -> Plan:
    position, read_to = _bronze(request.lake_root)
    position.advances(counted_position(newest))
    certifiable = certifiable_end(read_to.values(), request.clock(), request.policy)
    frontier = certifiable if newest is None else max(certifiable, newest.frontier)
    return Plan(
        newest=newest,
        position=position,
        release=1 if newest is None else newest.release + 1,
        frontier=frontier,
        rules=request.rules,
        policy=request.policy,
        full=request.full,
        cause=request.cause,
        certifying=frozenset() if newest is None else certifying_hours(request.lake_root, newest, frontier),
    )


def _bronze(lake_root: Path) -> tuple[BronzePosition, Mapping[str, datetime]]:
    try:
        position = bronze_position(lake_root)
        return position, log_read_to(lake_root, position.version)
    except (DeltaError, OSError, ValueError) as error:  # no JSON is a ValueError, as is no Parquet
        raise LakeUnreadableError(PLAYS.name, first_line(error)) from error


def _is_needed(plan: Plan, newest: Release) -> bool:
    """Say whether a new release would say anything new."""
    other_terms = plan.rules != newest.rules or plan.has_other_policy
    return bool(plan.full or plan.advances or other_terms or plan.certifying)


def _unchanged(newest: Release) -> RecountReport:
    return RecountReport(release=newest, is_new=False, new_events=0)


def _release(lake: Lake, plan: Plan, request: RecountRequest, on_step: Callable[[str], None]) -> RecountReport:
    staged = Stager(lake, plan, on_step).stage()
    on_step("prove")
    verdicts = prove(staged, plan)
    commits = _commit(lake, staged, plan, on_step)
    release = Release(
        release=plan.release,
        created_at=request.clock(),
        cause=request.cause or _cause(staged, plan),
        frontier=plan.frontier,
        position=plan.position,
        table_versions={table.name: lake.version(table) for table in DERIVED},
        rules=plan.rules,
        policy_fingerprint=plan.policy.fingerprint(),
        code_version=request.code_version,
        hours_touched=len(staged.touched.hours),
        verdicts=verdicts,
    )
    on_step(f"release {plan.release}")
    row = lake.frame([release.to_row()], spark_schema(RELEASES))
    lake.append(RELEASES, row, note=_note(plan))
    return RecountReport(release=release, is_new=True, new_events=plan.new_events, commits=commits)


def _commit(lake: Lake, staged: Staged, plan: Plan, on_step: Callable[[str], None]) -> dict[str, Commit]:
    """Commit every table that changes, in the order in which they depend on each other."""
    span = staged.span
    replaced: list[tuple[Table, DataFrame, Folders]] = [
        (LEFT_OUT, staged.left_out, span.hours),
        (HOURLY_COUNTS, staged.hourly, span.hours),
        (DAILY_COUNTS, staged.daily, span.days),
        (CHARTS, staged.charts, span.charts),
        (HOURS, staged.states, span.states),
    ]
    commits = {}
    for table, rows, folders in replaced:
        if folders.condition != NO_ROWS:
            on_step(f"commit {table.name}")
            commits[table.name] = lake.replace(table, rows, folders, note=_note(plan))
    for table, rows in ((CHART_HISTORY, staged.superseded), (RESTATEMENTS, staged.restatements)):
        if not lake.is_empty(rows):
            on_step(f"commit {table.name}")
            commits[table.name] = lake.append(table, rows, note=_note(plan))
    return commits


def _cause(staged: Staged, plan: Plan) -> str:
    if plan.newest is None:
        return "first count"
    if plan.full:
        return "full recount"
    touched = staged.touched
    reasons = {"new events": touched.with_new_events, "rules changed": touched.with_other_rules,
               "policy changed": touched.with_other_policy, "hours certified": touched.certifying}  # fmt: skip
    return ", ".join(reason for reason, hours in reasons.items() if hours) or _cause_without_hours(plan)


def _cause_without_hours(plan: Plan) -> str:
    return "policy changed" if plan.has_other_policy else "rules changed"


def _note(plan: Plan) -> str:
    return f"release {plan.release} of bronze version {plan.position.version}"
