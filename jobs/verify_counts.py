"""Proofs about numbers: hours, days, charts, and what was restated."""

# ruff: noqa: S608  the SQL is made of our own names, and of texts of the lake that are quoted by `text`

from collections.abc import Iterator

from domain.policy import Policy
from domain.releases import Release
from domain.tables import COUNT_COLUMNS, MEASURES
from jobs.proof_sql import Proof, differences, rows_of, unbalanced

_CHART = "window_length, event_date, event_hour, region"
_BOOKED = {"duplicates": "duplicate", "conflicts": "conflict", "excluded": "too_short"}
_WINDOWED = """
      WITH counts AS (
        SELECT '1h' AS window_length, event_date, event_hour, region, item_id, counted FROM hourly_counts
        WHERE counted > 0
        UNION ALL
        SELECT '1d', event_date, 0, region, item_id, counted FROM daily_counts WHERE counted > 0)
      SELECT * FROM counts UNION ALL
      SELECT window_length, event_date, event_hour, '*', item_id, sum(counted) FROM counts GROUP BY ALL"""


def count_proofs(release: Release, policy: Policy) -> list[Proof]:
    """Return the proofs about numbers of the lake as of a release, cheap ones first."""
    return [
        _hours_are_whole(release),
        _days_are_sums_of_hours(),
        _hours_are_recounted(),
        _charts_are_sorted_counts(policy.chart_size),
        _chart_versions_follow(release),
        _restatements_chain(),
    ]


def _hours_are_whole(release: Release) -> Proof:
    frontier = f"TIMESTAMPTZ '{release.frontier.isoformat()}'"
    facts = "event_date, event_hour, state, certified_in IS NOT NULL AS is_certified, received_events, counted"
    return Proof(
        name="hours_are_whole",
        says="every day with events has its 24 hours, with their sums, certified exactly up to the frontier",
        compared=rows_of("hours"),
        failing=differences(
            f"""SELECT event_date, event_hour, if(ended, 'certified', 'provisional') AS state,
    ended AS is_certified, coalesce(sum(received_events), 0) AS received_events,
    coalesce(sum(counted), 0) AS counted
  FROM (SELECT event_date, unnest(range(24))::INTEGER AS event_hour,
      (event_date + to_hours(event_hour + 1))::TIMESTAMPTZ <= {frontier} AS ended
    FROM (SELECT DISTINCT event_date FROM plays))
  LEFT JOIN hourly_counts USING (event_date, event_hour) GROUP BY ALL""",
            f"SELECT {facts} FROM hours",
        ),
    )


def _days_are_sums_of_hours() -> Proof:
    keys = "event_date, region, item_id"
    return Proof(
        name="days_are_sums_of_hours",
        says="the ten numbers of every day, region and item are the sums of its hours",
        compared=rows_of("daily_counts"),
        failing=unbalanced(
            keys,
            f"SELECT {keys}, 1 AS rows, {_sums()} FROM hourly_counts GROUP BY {keys}",
            f"SELECT {keys}, -1 AS rows, {_negated()} FROM daily_counts",
        ),
    )


def _hours_are_recounted() -> Proof:
    keys = "event_date, event_hour, region, item_id"
    return Proof(
        name="hours_are_recounted",
        says="the ten numbers of every hour, region and item are its bronze rows minus what is left out",
        compared=rows_of("hourly_counts"),
        failing=unbalanced(
            keys,
            f"SELECT {keys}, 1 AS rows, {', '.join(_received())} FROM plays GROUP BY {keys}",
            f"SELECT {keys}, 0 AS rows, {', '.join(_taken_out())} FROM left_out GROUP BY {keys}",
            f"SELECT {keys}, -1 AS rows, {_negated()} FROM hourly_counts",
        ),
    )


def _charts_are_sorted_counts(size: int) -> Proof:
    columns = f"{_CHART}, window_start, rank, item_id, counted, total, items, tie_at_cut"
    return Proof(
        name="charts_are_sorted_counts",
        says=f"every chart lists the best {size} items of its window and region, sorted, with total and tie",
        compared=rows_of("charts"),
        failing=differences(
            f"""SELECT {_CHART}, (event_date + to_hours(event_hour))::TIMESTAMPTZ AS window_start,
    rank, item_id, counted, total, items, next_at_cut AS tie_at_cut
  FROM (SELECT *, row_number() OVER best AS rank,
      sum(counted) OVER chart AS total, count(*) OVER chart AS items,
      coalesce(nth_value(counted, {size} + 1) OVER everything = nth_value(counted, {size}) OVER everything,
        false) AS next_at_cut
    FROM ({_WINDOWED})
    WINDOW chart AS (PARTITION BY {_CHART}),
      best AS (PARTITION BY {_CHART} ORDER BY counted DESC, item_id),
      everything AS (PARTITION BY {_CHART} ORDER BY counted DESC, item_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING))
  WHERE rank <= {size}""",
            f"SELECT {columns} FROM charts",
        ),
    )


def _chart_versions_follow(release: Release) -> Proof:
    return Proof(
        name="chart_versions_follow",
        says="the versions of every chart follow each other, each of one release and ending before the next",
        compared="SELECT (SELECT count(*) FROM charts) + (SELECT count(*) FROM chart_history)",
        failing=f"""
WITH versions AS (
  SELECT {_CHART}, release, NULL AS superseded_by, count(*) AS rows, max(rank) AS last
  FROM charts GROUP BY ALL
  UNION ALL
  SELECT {_CHART}, release, superseded_by, count(*), max(rank) FROM chart_history GROUP BY ALL)
SELECT *, lead(release) OVER (PARTITION BY {_CHART} ORDER BY release, superseded_by) AS next_release
FROM versions
QUALIFY rows <> last OR release > {release.release} OR superseded_by <= release
  OR superseded_by > {release.release} OR next_release < superseded_by
  OR (superseded_by IS NULL AND next_release IS NOT NULL)""",
    )


def _restatements_chain() -> Proof:
    key = "window_length, window_start, region, item_id, measure"
    now = " ".join(f"WHEN '{measure}' THEN coalesce(h.{measure}, d.{measure}, 0)" for measure in MEASURES)
    return Proof(
        name="restatements_chain",
        says="the restatements of every number lead, one to the next, from what was published to what is now",
        compared=rows_of("restatements"),
        failing=f"""
WITH chain AS (SELECT *, lead(old) OVER following AS next_old, lead(release) OVER following AS next_release
  FROM restatements WINDOW following AS (PARTITION BY {key} ORDER BY release))
SELECT c.release, window_length, window_start, c.region, c.item_id, measure, old, new, next_release, next_old,
  CASE measure {now} END AS now
FROM chain AS c
LEFT JOIN hourly_counts AS h ON window_length = '1h' AND h.event_date = window_start::DATE
  AND h.event_hour = hour(window_start) AND h.region = c.region AND h.item_id = c.item_id
LEFT JOIN daily_counts AS d ON window_length = '1d' AND d.event_date = window_start::DATE
  AND d.region = c.region AND d.item_id = c.item_id
WHERE old = new OR next_release = c.release OR now IS NULL
  OR CASE WHEN next_release IS NULL THEN new <> now ELSE new <> next_old END""",
    )


def _received() -> Iterator[str]:
    for name in COUNT_COLUMNS:
        measure, number = _split(name)
        yield f"{number if measure in ('received', 'counted') else '0'} AS {name}"


def _taken_out() -> Iterator[str]:
    for name in COUNT_COLUMNS:
        measure, number = _split(name)
        if measure in _BOOKED:
            yield f"coalesce({number} FILTER (reason = '{_BOOKED[measure]}'), 0) AS {name}"
        else:
            yield f"{'-' + number if measure == 'counted' else '0'} AS {name}"


def _split(name: str) -> tuple[str, str]:
    measure = name.removesuffix("_events")
    return measure, "count(*)" if measure != name else 'sum("count")'


def _sums() -> str:
    return ", ".join(f"sum({name}) AS {name}" for name in COUNT_COLUMNS)


def _negated() -> str:
    return ", ".join(f"-{name} AS {name}" for name in COUNT_COLUMNS)
