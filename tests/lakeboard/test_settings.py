import re
from pathlib import Path

import pytest

from domain.clock import utc_now
from lakeboard.api_settings import api_settings
from lakeboard.replay import replay_from
from lakeboard.settings import DEFAULT_HOME, InvalidSettingError, Settings, settable, size_in_bytes

pytestmark = pytest.mark.fast

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
# A value that is not the default, as the environment has it and as the settings have it.
OTHER: dict[str, tuple[str, object]] = {
    "driver_memory": ("512m", "512m"),
    "shuffle_partitions": ("8", 8),
    "spark_master": ("local[2]", "local[2]"),
    "accelerator": ("true", True),
    "java_home": ("/opt/java", "/opt/java"),
    "jars": ("/opt/jars", Path("/opt/jars")),
    "host": ("0.0.0.0", "0.0.0.0"),  # noqa: S104  nothing listens
    "port": ("9000", 9000),
    "workers": ("2", 2),
    "cors": ("https://a.example,http://localhost:3000", "https://a.example,http://localhost:3000"),
    "open_reads": ("false", False),
    "requests_per_second": ("7", 7),
    "events_per_second": ("8", 8),
    "reads_per_second": ("9", 9),
    "log_url": ("redis://log.example:6379/0", "redis://log.example:6379/0"),
    "log_max_memory": ("4g", "4g"),
    "log_min_free_disk": ("10g", "10g"),
    "views_url": ("unix:///run/views.sock", "unix:///run/views.sock"),
    "views_max_memory": ("2g", "2g"),
    "commit_seconds": ("2.5", 2.5),
    "commit_rows": ("1000", 1000),
    "checkpoint_seconds": ("2.5", 2.5),
    "live_regions": ("50", 50),
    "live_width": ("8192", 8192),
    "board_shards": ("8", 8),
    "hourly": ("false", False),
    "demo": ("true", True),
}
# Written without quotes in TOML.
BARE = {name for name, (_, value) in OTHER.items() if isinstance(value, bool | int | float)}


def loaded(home: Path, toml: str = "", **environment: str) -> Settings:
    """Settings of a home with this file, and of these variables alone."""
    home.mkdir(exist_ok=True)
    (home / "lakeboard.toml").write_text(toml, encoding="utf-8")
    return Settings.load({"LAKEBOARD_HOME": str(home), **environment})


def problem_of(home: Path, toml: str = "", **environment: str) -> InvalidSettingError:
    with pytest.raises(InvalidSettingError) as caught:
        loaded(home, toml, **environment)
    assert "\n" not in str(caught.value)
    assert "docs/settings.md" in str(caught.value)
    return caught.value


def test_without_file_and_variables_everything_is_as_documented() -> None:
    assert Settings.load({}) == Settings(
        home=Path(".lakeboard"),
        driver_memory="4g",
        shuffle_partitions=4,
        spark_master="local[*]",
        accelerator=False,
        java_home=None,
        jars=None,
        host="127.0.0.1",
        port=8080,
        workers=1,
        cors="",
        open_reads=True,
        requests_per_second=50_000,
        events_per_second=500_000,
        log_url="",
        log_max_memory="1g",
        log_min_free_disk="1g",
        views_url="",
        views_max_memory="1g",
        commit_seconds=30.0,
        commit_rows=200_000,
        checkpoint_seconds=10.0,
        live_regions=200,
        live_width=4096,
        board_shards=1,
        search_path="",
        replay=None,
    )
    assert Path(".lakeboard") == DEFAULT_HOME


def test_every_setting_has_another_value_to_test_with() -> None:
    assert set(OTHER) == set(settable())


@pytest.mark.parametrize("name", OTHER)
def test_each_setting_is_taken_from_the_file(tmp_path: Path, name: str) -> None:
    written, value = OTHER[name]
    literal = written if name in BARE else f'"{written}"'

    settings = loaded(tmp_path, f"{name} = {literal}")

    assert getattr(settings, name) == value
    assert getattr(Settings(), name) != value


@pytest.mark.parametrize("name", OTHER)
def test_each_setting_is_taken_from_the_environment(tmp_path: Path, name: str) -> None:
    written, value = OTHER[name]

    assert getattr(loaded(tmp_path, **{f"LAKEBOARD_{name.upper()}": written}), name) == value


def test_the_environment_wins_and_leaves_other_values_of_the_file(tmp_path: Path) -> None:
    toml = 'driver_memory = "8g"\nshuffle_partitions = 6'

    settings = loaded(tmp_path, toml, LAKEBOARD_DRIVER_MEMORY="2g")

    assert (settings.driver_memory, settings.shuffle_partitions) == ("2g", 6)


def test_an_empty_variable_is_not_set(tmp_path: Path) -> None:
    settings = loaded(tmp_path, "accelerator = true", LAKEBOARD_ACCELERATOR="", LAKEBOARD_UNKNOWN="", JAVA_HOME="")

    assert settings.accelerator
    assert settings.java_home is None
    assert Settings.load({"LAKEBOARD_HOME": ""}).home == DEFAULT_HOME


def test_java_home_is_taken_before_JAVA_HOME(tmp_path: Path) -> None:  # noqa: N802  two different names
    assert loaded(tmp_path, JAVA_HOME="/a").java_home == "/a"
    assert loaded(tmp_path, 'java_home = "/b"', JAVA_HOME="/a").java_home == "/b"


def test_home_is_where_the_file_and_all_state_is(tmp_path: Path) -> None:
    settings = loaded(tmp_path / "elsewhere", "shuffle_partitions = 5", PATH="/bin")

    assert settings.shuffle_partitions == 5
    assert settings.lake_root == tmp_path / "elsewhere" / "lake"
    assert settings.rules_file == tmp_path / "elsewhere" / "rules.toml"
    assert settings.search_path == "/bin"


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("driver_memori = '8g'", "there is no setting 'driver_memori': there are driver_memory, "),
        ("search_path = '/bin'", "there is no setting 'search_path'"),
        ("home = '/srv'", "home is set by LAKEBOARD_HOME only"),
        ("[spark]\ndriver_memory = '8g'", "there is no setting 'spark'"),
        ("shuffle_partitions = 'many'", "shuffle_partitions must be a whole number from 1 on, not 'many'"),
        ("shuffle_partitions = 0", "shuffle_partitions must be a whole number from 1 on, not 0"),
        ("driver_memory = 8", "driver_memory must be a size of memory such as 4g or 512m, not 8"),
        ("driver_memory = '8 GB'", "driver_memory must be a size of memory"),
        ("accelerator = 'perhaps'", "accelerator must be true or false, not 'perhaps'"),
        ("spark_master = ''", "spark_master must be a Spark master"),
        ("java_home = 17", "java_home must be the path of a Java home, not 17"),
        ("jars = 1", "jars must be the path of a folder, not 1"),
        ("port = 0", "port must be a port from 1 to 65535, not 0"),
        ("port = 65536", "port must be a port from 1 to 65535, not 65536"),
        ("host = 'a b'", "host must be an address of this machine such as 127.0.0.1, not 'a b'"),
        ("workers = 0", "workers must be a whole number from 1 to 64, not 0"),
        ("commit_seconds = 0", "commit_seconds must be seconds from 0.1 to 3600, not 0"),
        ("commit_rows = 0", "commit_rows must be a whole number from 1 to 10000000, not 0"),
        ("log_url = '127.0.0.1:6379'", "log_url must be the address of a server such as redis://host:6379 or unix:///"),
        ("log_max_memory = '0g'", "log_max_memory must be a size of memory"),
        ("cors = 'example.org'", "cors must be origins such as https://example.org, separated by commas, or *"),
        ("events_per_second = 0", "events_per_second must be a whole number a second from 1 on, not 0"),
        ("replay = '2015-09-12,60'", "there is no setting 'replay'"),
        ("driver_memory = ", "is no TOML"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_the_file(tmp_path: Path, toml: str, words: str) -> None:
    problem = problem_of(tmp_path, toml)

    assert problem.source == str(tmp_path / "lakeboard.toml")
    assert words in problem.problem


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("LAKEBOARD_DRIVER_MEMORI", "8g", "there is no setting 'driver_memori'"),
        ("LAKEBOARD_SEARCH_PATH", "/bin", "there is no setting 'search_path'"),
        ("LAKEBOARD_SHUFFLE_PARTITIONS", "4.5", "must be a whole number from 1 on, not '4.5'"),
        ("LAKEBOARD_DRIVER_MEMORY", "lots", "must be a size of memory such as 4g or 512m, not 'lots'"),
        ("LAKEBOARD_ACCELERATOR", "perhaps", "must be true or false, not 'perhaps'"),
        ("LAKEBOARD_PORT", "http", "port must be a port from 1 to 65535, not 'http'"),
        ("LAKEBOARD_REPLAY", "2015-09-12,60", "must be as `lakeboard up --clock` sets it"),
    ],
)
def test_a_mistake_in_the_environment_is_named_with_its_variable(
    tmp_path: Path, variable: str, value: str, words: str
) -> None:
    problem = problem_of(tmp_path, "shuffle_partitions = 5", **{variable: value})

    assert problem.source == variable
    assert words in problem.problem


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lakeboard.toml"
    path.write_bytes(b"\xff")
    with pytest.raises(InvalidSettingError, match=r"lakeboard\.toml: is no TOML"):
        Settings.load({"LAKEBOARD_HOME": str(tmp_path)})

    path.unlink()
    path.mkdir()
    with pytest.raises(InvalidSettingError, match=r"lakeboard\.toml: cannot be read"):
        Settings.load({"LAKEBOARD_HOME": str(tmp_path)})


def test_unset_settings_do_not_look_at_what_was_chosen(tmp_path: Path) -> None:
    environment = {"LAKEBOARD_HOME": str(tmp_path), "LAKEBOARD_NONSENSE": "1", "PATH": "/bin", "JAVA_HOME": "/java"}
    (tmp_path / "lakeboard.toml").write_text("nonsense", encoding="utf-8")

    assert Settings.unset(environment) == Settings(home=tmp_path, search_path="/bin", java_home="/java")


# --- what follows from the settings ---


def test_servers_are_the_homes_own_unless_they_are_set(tmp_path: Path) -> None:
    own = loaded(tmp_path)
    other = loaded(tmp_path, 'log_url = "redis://a:1"\nviews_url = "redis://b:2"')

    assert own.log_address.startswith("unix:///")
    assert own.log_address.endswith("log.sock")
    assert own.views_address.endswith("views.sock")
    assert own.log_folder == tmp_path / "log"
    assert (other.log_address, other.views_address, other.log_folder) == ("redis://a:1", "redis://b:2", None)


def test_a_home_too_deep_for_a_socket_has_its_sockets_elsewhere(tmp_path: Path) -> None:
    deep = Settings(home=tmp_path / ("d" * 120))

    assert len(deep.log_address) < 107
    assert deep.log_address == Settings(home=tmp_path / ("d" * 120)).log_address
    assert deep.log_address != Settings(home=tmp_path / ("e" * 120)).log_address


@pytest.mark.parametrize(("size", "count"), [("1k", 1024), ("512m", 512 << 20), ("4G", 4 << 30), ("1t", 1 << 40)])
def test_sizes_are_powers_of_1024(size: str, count: int) -> None:
    assert size_in_bytes(size) == count


def test_the_api_is_told_what_was_set(tmp_path: Path) -> None:
    told = api_settings(loaded(tmp_path, "open_reads = false", LAKEBOARD_PORT="9000", LAKEBOARD_CORS="*",
                               LAKEBOARD_LOG_MIN_FREE_DISK="2g", LAKEBOARD_EVENTS_PER_SECOND="5"))  # fmt: skip

    assert (told.port, told.open_reads, told.cors_origins, told.min_free_bytes) == (9000, False, ("*",), 2 << 30)
    assert (told.events_per_second, told.log_folder, told.home) == (5, tmp_path / "log", tmp_path)
    assert api_settings(loaded(tmp_path)).cors_origins == ()


def test_parts_run_with_the_settings_of_their_stack(tmp_path: Path) -> None:
    clock = replay_from("2015-09-12T00:00Z,60", utc_now)
    stack = Settings(home=tmp_path, port=9000, workers=3, replay=clock)

    part = Settings.load(stack.environment_of_parts())

    assert (part.home, part.port, part.workers, part.replay) == (tmp_path, 9000, 3, clock)
    assert part.entry_clock == clock
    assert part.clock().year == 2015
    assert part.machine_clock().year > 2015


def test_the_page_has_one_heading_for_each_setting() -> None:
    headings = re.findall(r"^### (\S+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert headings == ["home", *settable()]
