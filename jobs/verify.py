"""`lakeboard verify`: prove the whole lake as of its newest release.

A second engine on purpose: Spark counted the lake, DuckDB counts it again with queries of its own, and shares
only the definitions in `domain` with it. What one of them gets wrong the other finds.
"""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from domain.errors import BadRequestError
from domain.policy import DEFAULT_POLICY, Policy
from ingest.lake_reader import LakeReader
from ingest.read_sql import create_views
from jobs.proof_sql import Proof
from jobs.verify_counts import count_proofs
from jobs.verify_events import event_proofs

SHOWN = 20


class UnknownProofError(BadRequestError):
    """A proof was asked for that does not exist."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(name, known)
        self.name = name
        self.known = known

    def __str__(self) -> str:
        return f"there is no proof {self.name!r}: choose among {', '.join(self.known)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of one proof.

    Attributes:
        name: Name of the proof.
        says: What it claims.
        compared: Rows it looked at.
        failures: Rows that contradict it.
        columns: Names of the columns of `sample`.
        sample: The first `SHOWN` of these rows.
        query: SQL that finds them, for `lakeboard sql`.
        error: Why the proof could not run, None when it did.
        seconds: How long it took.
    """

    name: str
    says: str
    compared: int
    failures: int
    columns: Sequence[str]
    sample: Sequence[tuple[Any, ...]]
    query: str
    error: str | None
    seconds: float

    @property
    def holds(self) -> bool:
        """True only when the proof ran to its end and found nothing."""
        return self.error is None and self.failures == 0


def run(
    lake_root: Path,
    *,
    policy: Policy = DEFAULT_POLICY,
    memory_limit: str = "1GB",
    only: Collection[str] = (),
    on_start: Callable[[Proof], None] = lambda proof: None,
    on_verdict: Callable[[Verdict], None] = lambda verdict: None,
) -> list[Verdict]:
    """Run the proofs and return a verdict each. Writes nothing but what it spills to the temporary folder.

    Args:
        lake_root: Folder of the lake.
        policy: Gives the size of charts.
        memory_limit: Most that DuckDB may hold in memory, such as `1GB`; beyond it spills to disk.
        only: Names of proofs; all when empty.
        on_start: Told each proof before it runs.
        on_verdict: Told each verdict.

    Raises:
        NothingCountedError: the lake has no release.
        UnknownProofError: a name in `only` is none.
        LakeUnreadableError: a table that the release names cannot be opened.
    """
    with LakeReader(lake_root, memory_limit=memory_limit) as reader:
        newest = reader.releases.newest()
        chosen = _chosen([*event_proofs(newest), *count_proofs(newest, policy)], only)
        connection = reader.files.connection
        connection.execute("SET preserve_insertion_order = false")
        create_views(reader.files, reader.tables())
        verdicts = []
        for proof in chosen:
            on_start(proof)
            verdicts.append(judge(connection, proof))
            on_verdict(verdicts[-1])
        return verdicts


def _chosen(known: Sequence[Proof], only: Collection[str]) -> list[Proof]:
    names = [proof.name for proof in known]
    for name in only:
        if name not in names:
            raise UnknownProofError(name, names)
    return [proof for proof in known if not only or proof.name in only]


def _count(connection: duckdb.DuckDBPyConnection, proof: Proof) -> int:
    rows: int = connection.execute(f"SELECT count(*) FROM ({proof.failing})").fetchall()[0][0]  # noqa: S608
    return rows


def judge(connection: duckdb.DuckDBPyConnection, proof: Proof) -> Verdict:
    """Run one proof. One that cannot run is a failure with a reason: the lake is not proved."""
    started = time.monotonic()
    compared, failures, error = 0, 0, None
    columns: list[str] = []
    sample: list[tuple[Any, ...]] = []
    try:
        compared = connection.execute(proof.compared).fetchall()[0][0]
        cursor = connection.execute(proof.failing)
        columns = [column[0] for column in cursor.description or ()]
        sample = cursor.fetchmany(SHOWN)
        failures = len(sample) if len(sample) < SHOWN else _count(connection, proof)
    except duckdb.Error as failure:
        error = " ".join(str(failure).split("\nLINE ")[0].split())
    return Verdict(
        name=proof.name,
        says=proof.says,
        compared=compared,
        failures=failures,
        columns=columns,
        sample=sample,
        query=proof.failing.strip(),
        error=error,
        seconds=time.monotonic() - started,
    )
