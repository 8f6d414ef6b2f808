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

_GAME = Column("game", Type.STRING, "game")
_BOARD = Column("board", Type.STRING, "key of the period, as `daily:2026-11-14`")

BOARD_ENTRIES = Table(
    name="gold/board_entries",
    grain="one player on one board, as a rebuild certified it",
    partition_by=(),
    writer=Writer.SPARK,
    columns=(
        _GAME,
        _BOARD,
        Column("player_id", Type.STRING, "who, 1 to 256 bytes of UTF-8 in NFC"),
        Column("score", Type.LONG, "best score, or the sum"),
        Column("reached_at", Type.TIMESTAMP, "since when it stands, UTC"),
        Column("zeros_alone", Type.BOOLEAN, "of sums: all deltas were 0"),
        Column("rank", Type.LONG, "place on the board, from 1; NULL = banned", nullable=True),
    ),
)
BOARD_CERTIFICATES = Table(
    name="gold/board_certificates",
    grain="one board of one rebuild, and one row for all boards of it together",
    partition_by=(),
    writer=Writer.SPARK,
    columns=(
        Column("rebuild", Type.LONG, "number of the rebuild, from 1"),
        Column("game", Type.STRING, "game; `*` for all boards together"),
        Column("board", Type.STRING, "key of the period; `*` for all boards together"),
        Column("created_at", Type.TIMESTAMP, "when it was made, UTC"),
        Column("scores_version", Type.LONG, "Delta version of bronze/scores that it counts"),
        Column("entries_version", Type.LONG, "Delta version of gold/board_entries that has its players"),
        Column("positions", Type.STRING, "JSON: `<log id>/<partition>` -> last entry of the log that it counts"),
        Column("players", Type.LONG, "ranked players"),
        Column("banned", Type.LONG, "banned players, whose entries are kept"),
        Column("digest", Type.STRING, "of all players with their ranks, 16 hex digits: equal boards, equal digests"),
        Column("code_version", Type.STRING, "version of lakeboard that made it"),
    ),
)
BOARD_ARCHIVES = Table(
    name="gold/board_archives",
    grain="one board of a period that ended, as a rebuild found it; of a board and revision the newest row holds",
    partition_by=(),
    writer=Writer.ARCHIVER,
    columns=(
        _GAME,
        _BOARD,
        Column("revision", Type.LONG, "from 1, growing each time that the board has changed"),
        Column("archived_at", Type.TIMESTAMP, "when it was written, UTC"),
        Column("counted_to", Type.TIMESTAMP, "log time up to which every score is counted, UTC, exclusive"),
        Column("rebuild", Type.LONG, "number of the rebuild that counted them"),
        Column("players", Type.LONG, "ranked players of the board"),
        Column("places", Type.LONG, "how many of them gold/board_archive_places has, the best"),
        Column("digest", Type.STRING, "of the whole board, as in gold/board_certificates"),
        Column("code_version", Type.STRING, "version of lakeboard that wrote it"),
    ),
)
BOARD_ARCHIVE_PLACES = Table(
    name="gold/board_archive_places",
    grain="one place of a board of a period that ended, in one revision; only those of gold/board_archives hold",
    partition_by=(),
    writer=Writer.ARCHIVER,
    columns=(
        _GAME,
        _BOARD,
        Column("revision", Type.LONG, "as in gold/board_archives"),
        Column("rank", Type.LONG, "place, from 1"),
        Column("player_id", Type.STRING, "who, 1 to 256 bytes of UTF-8 in NFC"),
        Column("score", Type.LONG, "best score, or the sum"),
        Column("reached_at", Type.TIMESTAMP, "since when it stands, UTC"),
    ),
)
ARCHIVES = (BOARD_ARCHIVES, BOARD_ARCHIVE_PLACES)
BOARDS = (BOARD_ENTRIES, BOARD_CERTIFICATES, *ARCHIVES)
