"""Every table of the lake, column by column: the one definition that writers, readers and `docs/tables.md` share."""

from domain.board_tables import BOARDS, SCORES
from domain.table import EVENT_DATE, EVENT_HOUR, INGESTED_DATE, POSITION, WRITER, Column, Table, Type, Writer

PLAYS = Table(
    name="bronze/plays",
    grain="one accepted event, as received, copies included",
    partition_by=("event_date",),
    writer=Writer.LAKE_WRITER,
    columns=(
        Column("event_id", Type.STRING, "id of the event, 1 to 256 bytes of UTF-8 in NFC; copies share it"),
        Column("id_hash", Type.LONG, "xxh3-64 of event_id, as a signed number: finds copies, never decides"),
        Column("payload_hash", Type.LONG, "xxh3-64 of what the sender said: tells a duplicate from a conflict"),
        Column("item_id", Type.STRING, "what was played, 1 to 256 bytes of UTF-8 in NFC"),
        Column("region", Type.STRING, "where, upper case; ZZ = unknown"),
        Column("user_id", Type.STRING, "who played; NULL = not said", nullable=True),
        Column("event_time", Type.TIMESTAMP, "when it happened, UTC"),
        EVENT_DATE,
        EVENT_HOUR,
        Column("duration_ms", Type.LONG, "how long it played, milliseconds; NULL = not said", nullable=True),
        Column("count", Type.LONG, "how many plays the event stands for, at least 1"),
        Column("source", Type.STRING, "name of the import, or of the API"),
        Column("source_row", Type.LONG, "row in the source's file, from 0; NULL for the API", nullable=True),
        Column("time_source", Type.STRING, "`client` = event_time was sent, `server` = the log's time stands for it"),
        *POSITION,
        *WRITER,
    ),
    checks=(
        ("count_positive", "count >= 1"),
        ("hour_of_day", "event_hour >= 0 AND event_hour <= 23"),
        ("region_named", "region <> ''"),
    ),
)

REJECTS = Table(
    name="bronze/rejects",
    grain="one row that could not be taken, with the reason",
    partition_by=("ingested_date",),
    writer=Writer.LAKE_WRITER,
    columns=(
        Column("reason", Type.STRING, "stable code, see docs/importing.md"),
        Column("detail", Type.STRING, "the value or the parser's words, for a person", nullable=True),
        Column("source", Type.STRING, "name of the import"),
        Column("source_file", Type.STRING, "name of the file, without folders"),
        Column("source_row", Type.LONG, "row in the file, from 0, header not counted"),
        Column(
            "source_line", Type.LONG, "line in the file where the row starts, from 1; NULL for Parquet", nullable=True
        ),
        Column("payload", Type.STRING, "the row as it stood, bytes that are no UTF-8 as \\xNN, cut at 64 KiB"),
        Column("ingested_at", Type.TIMESTAMP, "when the import began, UTC"),
        INGESTED_DATE,
        *WRITER,
    ),
)

LEFT_OUT = Table(
    name="silver/left_out",
    grain="one received event that does not count, and why; kept for ever",
    partition_by=("event_date", "event_hour"),
    writer=Writer.SPARK,
    columns=(
        Column("event_id", Type.STRING, "id of the event"),
        Column("id_hash", Type.LONG, "as in bronze/plays"),
        *POSITION,
        Column("item_id", Type.STRING, "item it was sent for"),
        Column("region", Type.STRING, "region it was sent for"),
        Column("count", Type.LONG, "plays it stood for"),
        Column("reason", Type.STRING, "duplicate, conflict or too_short"),
        *(
            Column(
                f"winner_{column.name}", column.type, f"{column.name} of the copy that counts; NULL for a rule", True
            )
            for column in POSITION
        ),
        Column(
            "winner_payload_hash", Type.LONG, "payload_hash of the copy that counts; NULL for a rule", nullable=True
        ),
        EVENT_DATE,
        EVENT_HOUR,
    ),
)

MEASURES = ("received", "duplicates", "conflicts", "excluded", "counted")
_COUNTS = (
    Column("received", Type.LONG, "plays received: sum of count"),
    Column("duplicates", Type.LONG, "plays left out as copies with equal payload"),
    Column("conflicts", Type.LONG, "plays left out as copies with another payload"),
    Column("excluded", Type.LONG, "plays left out by a counting rule"),
    Column("counted", Type.LONG, "plays that count: received - duplicates - conflicts - excluded"),
    *(Column(f"{name}_events", Type.LONG, f"events behind {name}") for name in MEASURES),
)
COUNT_COLUMNS = tuple(column.name for column in _COUNTS)
_BALANCED = (
    ("plays_balance", "received = counted + duplicates + conflicts + excluded"),
    ("counted_not_negative", "counted >= 0"),
)

HOURLY_COUNTS = Table(
    name="gold/hourly_counts",
    grain="one item in one region and UTC hour",
    partition_by=("event_date", "event_hour"),
    writer=Writer.SPARK,
    columns=(
        EVENT_DATE,
        EVENT_HOUR,
        Column("region", Type.STRING, "region, ZZ = unknown"),
        Column("item_id", Type.STRING, "item; an item whose counted is 0 stays"),
        *_COUNTS,
    ),
    checks=_BALANCED,
)

DAILY_COUNTS = Table(
    name="gold/daily_counts",
    grain="one item in one region and UTC day: sums of hours, nothing else",
    partition_by=("event_date",),
    writer=Writer.SPARK,
    columns=(
        EVENT_DATE,
        Column("region", Type.STRING, "region, ZZ = unknown"),
        Column("item_id", Type.STRING, "item"),
        *_COUNTS,
    ),
    checks=_BALANCED,
)

HOURS = Table(
    name="gold/hours",
    grain="one UTC hour of a day that has events, empty hours too",
    partition_by=("event_date",),
    writer=Writer.SPARK,
    columns=(
        EVENT_DATE,
        EVENT_HOUR,
        Column("state", Type.STRING, "certified = counted past its end + grace, provisional = more may come"),
        Column("received_events", Type.LONG, "events received, copies included"),
        Column("counted", Type.LONG, "plays that count, all regions"),
        Column(
            "changed_in", Type.LONG, "release that last changed this hour's numbers; NULL = never had an event", True
        ),
        Column("certified_in", Type.LONG, "release that first certified it; NULL = not yet", nullable=True),
    ),
)

_CHART_COLUMNS = (
    Column("window_length", Type.STRING, "1h or 1d"),
    EVENT_DATE,
    Column("event_hour", Type.INT, "UTC hour at which the window starts; 0 for a day"),
    Column("window_start", Type.TIMESTAMP, "start of the window, included, UTC"),
    Column("region", Type.STRING, "region, ZZ = unknown, * = all regions"),
    Column("rank", Type.INT, "from 1; counted descending, then item_id by UTF-8 bytes"),
    Column("item_id", Type.STRING, "item"),
    Column("counted", Type.LONG, "plays of the item in the window"),
    Column("total", Type.LONG, "plays of all items in this window and region"),
    Column("items", Type.LONG, "items that counted in this window and region"),
    Column("tie_at_cut", Type.BOOLEAN, "the first item below the stored rows has as many plays as the last stored row"),
    Column("release", Type.LONG, "release that last changed this chart"),
)

CHARTS = Table(
    name="gold/charts",
    grain="one row of a chart: the best 1,000 items of a window and region",
    partition_by=("window_length", "event_date", "event_hour"),
    writer=Writer.SPARK,
    columns=_CHART_COLUMNS,
)

_MONTH = Column("month", Type.STRING, "UTC month of the window's start, YYYY-MM")

CHART_HISTORY = Table(
    name="gold/chart_history",
    grain="one row of a chart that a later release replaced",
    partition_by=("month",),
    writer=Writer.SPARK,
    columns=(*_CHART_COLUMNS, Column("superseded_by", Type.LONG, "release that replaced it"), _MONTH),
)

RESTATEMENTS = Table(
    name="gold/restatements",
    grain="one number of a certified window that a release changed",
    partition_by=("month",),
    writer=Writer.SPARK,
    columns=(
        Column("release", Type.LONG, "release that changed it"),
        Column("window_length", Type.STRING, "1h or 1d"),
        Column("window_start", Type.TIMESTAMP, "start of the window, UTC"),
        Column("region", Type.STRING, "region, ZZ = unknown"),
        Column("item_id", Type.STRING, "item"),
        Column("measure", Type.STRING, "received, duplicates, conflicts, excluded or counted"),
        Column("old", Type.LONG, "number before, 0 when there was no row"),
        Column("new", Type.LONG, "number after, 0 when there is no row"),
        Column("cause", Type.STRING, "late_event, late_duplicate, rules_changed, or what the operator said"),
        _MONTH,
    ),
)

RELEASES = Table(
    name="gold/releases",
    grain="one set of table versions that passed the proofs together; the newest is what readers see",
    partition_by=(),
    writer=Writer.SPARK,
    columns=(
        Column("release", Type.LONG, "number, from 1"),
        Column("created_at", Type.TIMESTAMP, "when it was made, UTC"),
        Column("cause", Type.STRING, "why it was made"),
        Column("frontier", Type.TIMESTAMP, "exclusive end of what batch has certified, UTC"),
        Column("bronze_version", Type.LONG, "Delta version of bronze/plays it counts"),
        Column("bronze_events", Type.LONG, "rows of bronze/plays at that version"),
        Column("positions", Type.STRING, "JSON: writer -> last transaction counted"),
        Column("table_versions", Type.STRING, "JSON: table -> Delta version"),
        Column("rules_fingerprint", Type.STRING, "counting rules in force"),
        Column("rules", Type.STRING, "the rules themselves, JSON"),
        Column("policy_fingerprint", Type.STRING, "domain/policy.py in force"),
        Column("code_version", Type.STRING, "version of lakeboard that made it"),
        Column("hours_touched", Type.LONG, "hours whose numbers were computed for it"),
        Column("verdicts", Type.STRING, "JSON: proof -> what was compared"),
    ),
)

BRONZE = (PLAYS, SCORES, REJECTS)
DERIVED = (LEFT_OUT, HOURLY_COUNTS, DAILY_COUNTS, CHARTS, CHART_HISTORY, HOURS, RESTATEMENTS)
ALL = (*BRONZE, *DERIVED, RELEASES, *BOARDS)
