"""What a Delta log says that the deltalake package does not tell: all application transactions of a table.

Source: Delta transaction log protocol (PROTOCOL.md of delta-io/delta): actions `txn` in commits and checkpoints,
`_last_checkpoint`, classic checkpoints. Versions of one application only grow, so the largest one seen is the last.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from deltalake import DeltaTable


def app_transactions(table_path: Path, version: int) -> dict[str, int]:
    """Return application id -> last transaction version, as of a version of the table.

    Costs one checkpoint column and the commits after it, whatever the table holds.
    """
    log = table_path / "_delta_log"
    checkpoint, transactions = _from_checkpoint(log, version)
    for commit in range(checkpoint + 1, version + 1):
        for app, seq in _from_commit(log / f"{commit:020d}.json"):
            transactions[app] = max(seq, transactions.get(app, seq))
    return transactions


def newest_version(table_path: Path) -> int:
    """Return the newest version of a table by the names in its log, -1 when there is no table."""
    versions = [int(path.stem) for path in (table_path / "_delta_log").glob("*.json") if path.stem.isdigit()]
    return max(versions, default=-1)


def commit_info(table_path: Path, version: int) -> dict[str, Any]:
    """Return the `commitInfo` action of one commit: operation, metrics, user metadata; empty when it has none."""
    path = table_path / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    infos: list[dict[str, Any]] = [action["commitInfo"] for action in actions if "commitInfo" in action]
    return infos[0] if infos else {}


def row_count(table: DeltaTable) -> int:
    """Return the rows in the files of the loaded version, from their statistics: costs files, not rows."""
    counts = table.get_add_actions(flatten=True).column("num_records").to_pylist()
    return sum(counts)


def _from_checkpoint(log: Path, version: int) -> tuple[int, dict[str, int]]:
    """Return the newest classic checkpoint at or below the version (-1: none) and its transactions."""
    for path in sorted(log.glob("*.checkpoint.parquet"), reverse=True):
        at = int(path.name.split(".")[0])
        if at <= version:
            column = pq.read_table(path, columns=["txn"]).column("txn").to_pylist()
            return at, {txn["appId"]: txn["version"] for txn in column if txn is not None and txn["appId"] is not None}
    return -1, {}


def _from_commit(path: Path) -> Iterator[tuple[str, int]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if '"txn"' in line and (txn := json.loads(line).get("txn")):
            yield txn["appId"], txn["version"]
