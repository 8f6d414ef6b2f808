"""Proofs about events: what was received, what is left out, and why."""

# ruff: noqa: S608  the SQL is made of our own names, and of texts of the lake that are quoted by `text`

from domain.releases import Release
from domain.rules import MinimumDuration, Missing, Rules
from domain.table import POSITION_COLUMNS
from jobs.proof_sql import COPY, Proof, equal, rows_of, text


def event_proofs(release: Release) -> list[Proof]:
    """Return the proofs about events of the lake as of a release, cheap ones first."""
    return [
        _bronze_is_complete(release),
        _left_out_is_bronze(),
        _copies_lose_to_an_earlier_event(),
        _rules_are_applied(release.rules),
        _each_id_counts_once(),
    ]


def _bronze_is_complete(release: Release) -> Proof:
    known = ", ".join(f"({text(writer)}, {seq})" for writer, seq in sorted(release.position.writers.items()))
    return Proof(
        name="bronze_is_complete",
        says="bronze has as many rows as the release counted, and none of a transaction it did not know",
        compared=rows_of("plays"),
        failing=f"""
WITH known AS (SELECT * FROM (VALUES ('', -1){", " if known else ""}{known}) AS t (writer, seq)),
found AS (SELECT writer, max(writer_seq) AS seq FROM plays GROUP BY writer)
SELECT 'rows of bronze' AS what, (SELECT count(*) FROM plays) AS found, {release.position.events} AS expected
WHERE found <> expected
UNION ALL
SELECT 'transaction of ' || writer, found.seq, known.seq FROM found LEFT JOIN known USING (writer)
WHERE found.seq > coalesce(known.seq, -1)""",
    )


def _left_out_is_bronze() -> Proof:
    same = (
        "event_id",
        "id_hash",
        *POSITION_COLUMNS,
        "item_id",
        "region",
        "count",
        "event_date",
        "event_hour",
    )
    keys = ", ".join(f'l."{name}"' for name in ("event_id", *POSITION_COLUMNS))
    return Proof(
        name="left_out_is_bronze",
        says="every event left out is exactly one row of bronze, and is left out once, for a known reason",
        compared=rows_of("left_out"),
        failing=f"""
SELECT {keys}, any_value(reason) AS reason, count(p.event_id) AS matches
FROM left_out AS l LEFT JOIN plays AS p ON {equal("l", "p", same)}
GROUP BY {keys}
HAVING matches <> 1 OR NOT bool_and({COPY} OR (reason = 'too_short' AND winner_log_id IS NULL))""",
    )


def _copies_lose_to_an_earlier_event() -> Proof:
    own = ", ".join(f"l.{name}" for name in POSITION_COLUMNS)
    winner = ", ".join(f"l.winner_{name}" for name in POSITION_COLUMNS)
    won = " AND ".join(f"w.{name} = l.winner_{name}" for name in (*POSITION_COLUMNS, "payload_hash"))
    return Proof(
        name="copies_lose_to_an_earlier_event",
        says="the winner of every copy is a row of bronze with the same id and a smaller position, "
        "and a copy is a duplicate exactly when the payloads are equal",
        compared=f"SELECT count(*) FROM left_out WHERE {COPY}",
        failing=f"""
SELECT l.event_id, {own}, reason, {winner}, w.event_id IS NOT NULL AS winner_exists
FROM left_out AS l
LEFT JOIN plays AS w ON w.id_hash = l.id_hash AND w.event_id = l.event_id AND {won}
LEFT JOIN plays AS o ON {equal("l", "o", ("id_hash", *POSITION_COLUMNS))}
WHERE {COPY} AND (w.event_id IS NULL OR NOT ({winner}) < ({own})
  OR (reason = 'duplicate') IS DISTINCT FROM (o.payload_hash = w.payload_hash))""",
    )


def _rules_are_applied(rules: Rules) -> Proof:
    return Proof(
        name="rules_are_applied",
        says="of the events that are no copies, exactly those that the rules exclude are left out",
        compared=rows_of("plays"),
        failing=f"""
SELECT p.event_id, p.item_id, p.region, p.event_time, p.duration_ms, l.reason
FROM plays AS p LEFT JOIN left_out AS l ON {equal("l", "p", ("id_hash", *POSITION_COLUMNS))}
WHERE coalesce(l.reason, 'too_short') = 'too_short'
  AND (l.reason IS NOT NULL) <> ({too_short(rules)})""",
    )


def _each_id_counts_once() -> Proof:
    position = ", ".join(POSITION_COLUMNS)
    return Proof(
        name="each_id_counts_once",
        says="of all events that share an id, one and no more is not left out as a copy",
        compared=rows_of("plays"),
        failing=f"""
WITH repeated AS (SELECT id_hash FROM plays GROUP BY id_hash HAVING count(*) > 1),
standing AS (SELECT event_id FROM plays SEMI JOIN repeated USING (id_hash)
  ANTI JOIN (SELECT id_hash, {position} FROM left_out WHERE {COPY}) USING (id_hash, {position}))
SELECT event_id, count(*) AS standing FROM standing GROUP BY event_id HAVING count(*) > 1""",
    )


def too_short(rules: Rules) -> str:
    """Return `Rules.too_short` as a SQL condition over `plays`."""
    cases = [f"WHEN {_in_force(rule)} THEN {_is_short(rule)}" for rule in reversed(rules.minimum_durations)]
    return f"CASE {' '.join(cases)} ELSE false END" if cases else "false"


def _in_force(rule: MinimumDuration) -> str:
    return f"event_time >= TIMESTAMPTZ '{rule.effective_from.isoformat()}'"


def _is_short(rule: MinimumDuration) -> str:
    missing = "true" if rule.missing is Missing.EXCLUDE else "false"
    return f"coalesce(p.duration_ms < {rule.duration_ms}, {missing})"
