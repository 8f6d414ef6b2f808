import csv
import io
import json
import re
from pathlib import Path

import pytest

from domain.tables import ALL
from ingest.lake_reader import LakeReader
from ingest.read_files import LakeUnreadableError, MemoryLimitError
from ingest.read_sql import SqlFailedError, SqlRefusedError, _confine, create_views, run_sql
from lakeboard.commands.sql import sql_command
from tests.command_line import ran, said
from tests.lakes import ModelLake, Play, at, write_table


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = ModelLake()
    model.release([Play(f"e{n}", 'é,"x"', at(1), "IN") for n in range(3)], frontier=at(2))
    return model.write(tmp_path_factory.mktemp("lake") / "it's=here")


# --- what can be asked ---


def test_every_table_goes_by_its_short_and_its_full_name(lake: Path) -> None:
    with LakeReader(lake) as reader:
        create_views(reader.files, reader.tables())
        for table in ALL:
            full = reader.files.connection.execute(f"SELECT * FROM {table.name.replace('/', '.')}")
            short = reader.files.connection.cursor().execute(f"SELECT * FROM {table.view}")

            assert [column[0] for column in short.description or ()] == table.column_names
            assert full.fetchall() == short.fetchall()


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT count(*) FROM plays;", [(3,)]),
        ("FROM plays SELECT sum(count)", [(3,)]),
        ("SELECT sum(c) FROM (SELECT count AS c FROM plays UNION ALL VALUES (39))", [(42,)]),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT max(i) FROM n", [(4,)]),
        ("SELECT count(*) FROM range(5)", [(5,)]),
        ("SELECT current_setting('TimeZone')", [("UTC",)]),
        ("SELECT event_hour FROM hourly_counts WHERE event_date = '2026-11-14' -- a comment", [(1,)]),
    ],
)
def test_reading_queries_of_all_forms_run(lake: Path, query: str, rows: list[tuple[object, ...]]) -> None:
    with LakeReader(lake) as reader:
        assert run_sql(reader, query, most=10).rows == rows


@pytest.mark.parametrize("query", ["DESCRIBE charts", "SHOW TABLES", "SUMMARIZE hours"])
def test_the_lake_describes_itself(lake: Path, query: str) -> None:
    assert len(said(sql_command, lake, query).splitlines()) > 5


def test_rows_that_were_cut_off_are_told(lake: Path) -> None:
    result = ran(sql_command, lake, "SELECT event_id FROM plays", "--limit", "2")
    all_of_them = ran(sql_command, lake, "SELECT event_id FROM plays", "--limit", "0")

    assert "Only the first 2 rows are shown" in result.stderr
    assert all_of_them.stderr == ""
    assert len(all_of_them.stdout.splitlines()) == len(result.stdout.splitlines()) + 1


def test_csv_is_read_back_as_it_was(lake: Path) -> None:
    query = "SELECT item_id, user_id, event_time, count, true AS yes FROM plays LIMIT 1"
    rows = list(csv.reader(io.StringIO(said(sql_command, lake, query, "--format", "csv"))))

    assert rows == [["item_id", "user_id", "event_time", "count", "yes"],
                    ["é,\"x\"", "", "2026-11-14T01:00:00Z", "1", "true"]]  # fmt: skip


def test_json_keeps_numbers_nulls_and_columns_of_one_name(lake: Path) -> None:
    query = "SELECT 1 AS a, NULL AS a, 9007199254740993 AS b, 0.1 AS c, event_time FROM plays LIMIT 1"

    assert json.loads(said(sql_command, lake, query, "--format", "json")) == [
        {"a": 1, "a_2": None, "b": 9007199254740993, "c": 0.1, "event_time": "2026-11-14T01:00:00Z"}
    ]


def test_a_query_can_come_through_a_pipe(lake: Path) -> None:
    assert json.loads(said(sql_command, lake, "-", "--format", "json", text="SELECT 'a\"b' AS x")) == [{"x": 'a"b'}]


def test_before_the_first_recount_bronze_can_be_read(tmp_path: Path) -> None:
    for table in ALL[:2]:
        write_table(tmp_path, table, [])

    result = ran(sql_command, tmp_path, "SELECT count(*) AS n FROM plays, charts", "--format", "json")

    assert json.loads(result.stdout) == [{"n": 0}]
    assert "No play has been counted yet" in result.stderr


# --- what cannot ---

REFUSED = [
    ("", "0 statements"),
    ("SELECT 1; SELECT 2", "2 statements"),
    ("COPY plays TO '{out}'", "COPY"),
    ("COPY plays FROM '/etc/passwd'", "COPY"),
    ("ATTACH '{out}' AS x", "ATTACH"),
    ("INSTALL httpfs", "LOAD"),
    ("LOAD httpfs", "LOAD"),
    ("PRAGMA database_list", "PRAGMA"),
    ("SET enable_external_access = true", "SET"),
    ("RESET lock_configuration", "SET"),
    ("CALL pragma_version()", "CALL"),
    ("EXPORT DATABASE '{out}'", "EXPORT"),
    ("CREATE TABLE x AS SELECT 1", "CREATE"),
    ("INSERT INTO plays VALUES (1)", "INSERT"),
    ("UPDATE plays SET count = 2", "UPDATE"),
    ("DELETE FROM plays", "DELETE"),
    ("DROP VIEW plays", "DROP"),
    ("EXPLAIN ANALYZE COPY (SELECT 1) TO '{out}'", "EXPLAIN"),
    ("PREPARE p AS SELECT 1", "PREPARE"),
    ("WITH x AS (COPY (SELECT 1) TO '{out}') SELECT 1", "COPY inside"),
    ("SELECT (WITH x AS (COPY (SELECT 1) TO '{out}') SELECT 1)", "COPY inside"),
    ("WITH x AS (COPY (SELECT 1) TO '{data}' (USE_TMP_FILE false)) SELECT 1", "COPY inside"),
    ("WITH x AS (INSERT INTO plays VALUES (1) RETURNING *) SELECT * FROM x", "inside"),
    ("SELECT * FROM read_csv('/etc/passwd')", "read_csv"),
    ("SELECT * FROM READ_TEXT('/etc/passwd')", "read_text"),
    ("SELECT * FROM read_blob('{data}')", "read_blob"),
    ("SELECT * FROM read_parquet('{data}')", "read_parquet"),
    ("SELECT * FROM parquet_metadata('{data}')", "parquet_metadata"),
    ("SELECT (SELECT max(file) FROM glob('/etc/*'))", "glob"),
    ("SELECT * FROM query('SELECT 1')", "query"),
    ("SELECT * FROM query_table('plays')", "query_table"),
    ("SELECT * FROM enable_logging(storage = 'file', storage_path = '{out}')", "enable_logging"),
    ("SELECT * FROM plays WHERE EXISTS (FROM sniff_csv('/etc/passwd'))", "sniff_csv"),
    ("PIVOT plays ON region USING sum(count)", "PIVOT has to name its values"),
]


@pytest.mark.parametrize(("query", "reason"), REFUSED, ids=[query[:60] for query, _ in REFUSED])
def test_everything_that_could_do_more_than_read_the_tables_is_refused(
    lake: Path, tmp_path: Path, query: str, reason: str
) -> None:
    data = next((lake / "bronze/plays").rglob("*.parquet"))
    before = data.read_bytes()

    with LakeReader(lake) as reader, pytest.raises(SqlRefusedError, match=re.escape(reason)):
        run_sql(reader, query.format(out=tmp_path / "out", data=str(data).replace("'", "''")), most=1)

    assert data.read_bytes() == before
    assert list(tmp_path.iterdir()) == []


FENCED = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM glob('/etc/*')",
    "COPY (SELECT 1) TO '{out}'",
    "WITH x AS (COPY (SELECT 1) TO '{out}') SELECT 1",
    "ATTACH '{out}' AS x",
    "INSTALL httpfs",
    "SET enable_external_access = true",
    "SET allowed_paths = ['/etc/passwd']",
    "SET memory_limit = '100GB'",
    "SELECT * FROM secret_of_the_process",
    "SELECT * FROM enable_logging(storage = 'file', storage_path = '{out}')",
]


@pytest.mark.parametrize("query", FENCED)
def test_the_engine_itself_refuses_what_should_slip_through_the_parser(lake: Path, tmp_path: Path, query: str) -> None:
    secret_of_the_process = {"a": [1]}  # noqa: F841  a Python variable that DuckDB would find by its name
    with LakeReader(lake) as reader:
        tables = reader.tables()
        create_views(reader.files, tables)
        _confine(reader.files.connection, tables)

        with pytest.raises(Exception, match=r"disabled|locked|does not exist|Permission"):
            reader.files.connection.execute(query.format(out=tmp_path / "out")).fetchall()

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELEC 1", 'syntax error at or near "SELEC"'),
        ("SELECT nothing FROM plays", 'column "nothing" not found'),
        ("SELECT * FROM chart", "Table with name chart does not exist"),
        ("SELECT * FROM '/etc/passwd'", "does not exist"),
        ("SELECT 1 / 0 + 'a'::INTEGER", "Could not convert"),
        ("SELECT $1", "parameter"),
    ],
)
def test_what_duckdb_cannot_run_is_one_sentence(lake: Path, query: str, words: str) -> None:
    with LakeReader(lake) as reader, pytest.raises(SqlFailedError, match="lakeboard tables") as raised:
        run_sql(reader, query, most=1)

    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_sorting_more_than_the_memory_spills_and_stays_within_the_fence(lake: Path) -> None:
    query = "SELECT range, repeat('x', 100) || range AS padded FROM range(1000000) ORDER BY padded DESC LIMIT 900000"
    with LakeReader(lake, memory_limit="60MB") as reader:
        assert run_sql(reader, query, most=1).rows[0][0] == 999999


def test_a_memory_limit_that_is_none_is_refused(lake: Path) -> None:
    assert isinstance(ran(sql_command, lake, "SELECT 1", "--memory", "much").exception, MemoryLimitError)


def test_a_lost_file_is_not_taken_for_a_wrong_query(tmp_path: Path) -> None:
    model = ModelLake()
    model.release([Play("e", "a", at(1))], frontier=at(2))
    lake = model.write(tmp_path)
    next((lake / "gold/charts").rglob("*.parquet")).unlink()

    assert isinstance(ran(sql_command, lake, "SELECT * FROM charts").exception, LakeUnreadableError)
