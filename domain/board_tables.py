"""The tables of boards."""

from domain.table import EVENT_DATE, POSITION, WRITER, Column, Table, Type, Writer

SCORES = Table(
    name="bronze/scores",
    grain="one event of a board, as received, copies included: a score, or what was decided of a player or a match",
    partition_by=("event_date",),
    writer=Writer.LAKE_WRITER,
    columns=(
        Column("kind", Type.STRING, "score, ban, restore, approve or remove"),
        Column("game", Type.STRING, "game; empty for bans, which hold in all"),
        Column("player_id", Type.STRING, "whose it is, 1 to 256 bytes of UTF-8 in NFC"),
        Column("match_id", Type.STRING, "match of a score, an approval or a removal; empty for bans"),
        Column("score", Type.LONG, "score or delta; 0 where there is none"),
        Column("event_time", Type.TIMESTAMP, "when the match ended, or the log took the decision, UTC"),
        EVENT_DATE,
        Column("time_source", Type.STRING, "`client` = event_time was sent, `server` = the log's time stands for it"),
        Column("fingerprint", Type.LONG, "xxh3-64 of what the sender said: tells a repeat from a conflict"),
        Column("reason", Type.STRING, "of a ban; NULL = none was said", nullable=True),
        Column("until", Type.TIMESTAMP, "when a ban ends by itself, UTC; NULL = it does not", nullable=True),
        Column("source", Type.STRING, "name of the API's key, as `api/<name>`"),
        *POSITION,
        *WRITER,
    ),
    checks=(("kind_named", "kind <> ''"),),
)
