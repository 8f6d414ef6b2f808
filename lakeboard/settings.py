"""Settings of the command line: the only place that reads its environment."""

import os
import tomllib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Self, get_args

import msgspec
from msgspec import Meta

from domain.boards.definitions import ONE_GAME, Boards
from domain.clock import utc_now
from domain.errors import BadRequestError
from domain.policy import DEFAULT_POLICY, Policy
from domain.rules import Rules
from domain.speed_policy import DEFAULT_SPEED_POLICY, SpeedPolicy
from ingest.log_clock import ENTRY_CLOCK_NOW, EntryClock, ReplayClock
from lakeboard import setting_kinds as kinds
from lakeboard.replay import replay_clock, replay_text
from lakeboard.stack.servers import address, socket_path

DEFAULT_HOME = Path(".lakeboard")
FILE_NAME = "lakeboard.toml"
_PREFIX = "LAKEBOARD_"
_HOME = f"{_PREFIX}HOME"
REPLAY = f"{_PREFIX}REPLAY"  # of `lakeboard up --clock` for its parts: start, began, speed


class InvalidSettingError(BadRequestError):
    """A setting has a value that it cannot have, or does not exist.

    Attributes:
        source: Where it is set: an environment variable or a file.
        problem: What is wrong with it.
    """

    def __init__(self, source: str, problem: str) -> None:
        super().__init__(source, problem)
        self.source = source
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.source}: {self.problem}; see docs/settings.md for the names and values"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a person may set, in `lakeboard.toml` of the home folder or as LAKEBOARD_<NAME>; the latter wins.

    Attributes:
        home: Where all state lives; LAKEBOARD_HOME only.
        driver_memory: Heap of Spark's driver.
        shuffle_partitions: Tasks after a shuffle in Spark.
        spark_master: Spark in this process, or a cluster.
        accelerator: Use the accelerator profile for Spark.
        java_home: Java for Spark instead of what set-up found.
        jars: Folder with the Delta jars instead of what set-up fetched.
        host: Address on which the API listens.
        port: Its port.
        workers: Processes of the API.
        cors: Origins of pages that may call the API, separated by commas; empty = none.
        open_reads: Whether reading needs no key.
        requests_per_second: Requests that a key may make, unless the key says otherwise.
        events_per_second: Events that a key may send, unless the key says otherwise.
        reads_per_second: How often one key or address may read one chart.
        log_url: Server of the event log; empty = the stack's own.
        log_max_memory: Memory limit of the stack's log server.
        log_min_free_disk: What must stay free on the log's disk.
        views_url: Server of the live views; empty = the stack's own.
        views_max_memory: Memory limit of the stack's views server.
        commit_seconds: How often the lake writer commits.
        commit_rows: Events after which it commits earlier.
        checkpoint_seconds: How often the live counting stores its state.
        live_regions: Most regions that are counted live by themselves.
        live_width: Cells a row of the sketches of all regions together; a region's have a quarter of it.
        board_shards: Into how many shards the players of boards are split.
        hourly: Whether `lakeboard up` recounts and publishes each hour by itself.
        demo: Whether `lakeboard up` sends made-up plays to itself.
        search_path: PATH, where programs are looked for last; not a setting.
        replay: Clock of a replay stack; LAKEBOARD_REPLAY only, set by `lakeboard up --clock`.
    """

    home: Path = DEFAULT_HOME
    driver_memory: kinds.Memory = "4g"
    shuffle_partitions: kinds.Tasks = 4
    spark_master: kinds.Master = "local[*]"
    accelerator: kinds.YesOrNo = False
    java_home: kinds.JavaHome = None
    jars: kinds.Folder = None
    host: kinds.Host = "127.0.0.1"
    port: kinds.Port = 8080
    workers: kinds.Workers = 1
    cors: kinds.Origins = ""
    open_reads: kinds.YesOrNo = True
    requests_per_second: kinds.PerSecond = 50_000
    events_per_second: kinds.PerSecond = 500_000
    reads_per_second: kinds.PerSecond = 5
    log_url: kinds.Server = ""
    log_max_memory: kinds.Memory = "1g"
    log_min_free_disk: kinds.Memory = "1g"
    views_url: kinds.Server = ""
    views_max_memory: kinds.Memory = "1g"
    commit_seconds: kinds.Seconds = 30.0
    commit_rows: kinds.Rows = 200_000
    checkpoint_seconds: kinds.Seconds = 10.0
    live_regions: kinds.LiveRegions = DEFAULT_SPEED_POLICY.regions
    live_width: kinds.LiveWidth = 4096
    board_shards: kinds.Shards = 1
    hourly: kinds.YesOrNo = True
    demo: kinds.YesOrNo = False
    search_path: str = ""
    replay: ReplayClock | None = None

    @classmethod
    def load(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Read the file, then the environment.

        Raises:
            InvalidSettingError: a value of the wrong kind, or a name that is no setting.
        """
        unset = cls.unset(environment)
        given = _given(environment)
        chosen = _from_file(unset.home / FILE_NAME) | _from_environment(given)
        return msgspec.structs.replace(unset, **chosen, replay=_replay(given.get(REPLAY, "")))

    @classmethod
    def unset(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Return the settings of a machine on which nobody chose any: never fails."""
        given = _given(environment)
        home = Path(given.get(_HOME) or DEFAULT_HOME)
        return cls(home=home, java_home=given.get("JAVA_HOME") or None, search_path=given.get("PATH", ""))

    @property
    def log_address(self) -> str:
        """Where the event log's server listens."""
        return self.log_url or address(socket_path(self.run_folder, "log"))

    @property
    def log_folder(self) -> Path | None:
        """Where the log server's files are; None when it is not ours, and so maybe on another machine."""
        return self.home / "log" if not self.log_url else None

    @property
    def views_address(self) -> str:
        """Where the views' server listens."""
        return self.views_url or address(socket_path(self.run_folder, "views"))

    @property
    def run_folder(self) -> Path:
        """Folder for sockets and for what the parts of a running stack say of themselves."""
        return self.home / "run"

    @property
    def logs_folder(self) -> Path:
        """Folder for what the parts print."""
        return self.home / "logs"

    @property
    def entry_clock(self) -> EntryClock:
        """What stamps entries of the log."""
        return self.replay or ENTRY_CLOCK_NOW

    @property
    def lake_root(self) -> Path:
        """Folder of the lake."""
        return self.home / "lake"

    @property
    def rules_file(self) -> Path:
        """Where the counting rules stand; without the file every play counts."""
        return self.home / "rules.toml"

    @property
    def boards_file(self) -> Path:
        """Where the boards are defined."""
        return self.home / "boards.toml"

    @property
    def policy(self) -> Policy:
        """The numbers that all parts agree on."""
        return DEFAULT_POLICY

    @property
    def speed_policy(self) -> SpeedPolicy:
        """The bounds of live counting."""
        return SpeedPolicy.of_size(regions=self.live_regions, width=self.live_width)

    def boards(self) -> Boards:
        """Read what is ranked; without the file that is one game.

        Raises:
            InvalidBoardsError: the file says something that cannot be a board.
        """
        return Boards.parse(self.boards_file.read_text(encoding="utf-8")) if self.boards_file.exists() else ONE_GAME

    def clock(self) -> datetime:
        """Tell the present moment, UTC; in a replay stack that of its clock."""
        return utc_now() if self.replay is None else self.replay.now()

    def machine_clock(self) -> datetime:
        """Tell the present moment, UTC, in a replay stack too."""
        return utc_now()

    def environment_of_parts(self) -> dict[str, str]:
        """Return the environment for processes that should run with these settings."""
        chosen = {_PREFIX + name.upper(): str(getattr(self, name)) for name in ("host", "port", "workers")}
        replay = {} if self.replay is None else {REPLAY: replay_text(self.replay)}
        return {**os.environ, **chosen, **replay, _HOME: str(self.home)}

    def rules(self) -> Rules:
        """Read the counting rules.

        Raises:
            InvalidRulesError: the file says something that cannot be a rule.
        """
        return Rules.parse(self.rules_file.read_text(encoding="utf-8")) if self.rules_file.exists() else Rules()


def settable() -> tuple[str, ...]:
    """Return the names that a file or the environment may set, but for `home`."""
    return tuple(name for name in Settings.__struct_fields__ if name not in ("home", "search_path", "replay"))


def size_in_bytes(size: str) -> int:
    """Return the bytes of a size such as `512m`; k, m, g and t are powers of 1024."""
    return int(size[:-1]) << 10 * ("kmgt".index(size[-1].lower()) + 1)


def _replay(text: str) -> ReplayClock | None:
    """Read the clock of a replay stack; nothing is no replay."""
    try:
        return replay_clock(text) if text else None
    except ValueError as error:
        raise InvalidSettingError(REPLAY, f"must be as `lakeboard up --clock` sets it ({error})") from error


def _given(environment: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if environment is None else environment


def _from_file(path: Path) -> dict[str, object]:
    """Read the values of a settings file; none where there is no file."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidSettingError(str(path), f"is no TOML ({error})") from error
    except OSError as error:
        raise InvalidSettingError(str(path), f"cannot be read ({error.strerror})") from error
    if "home" in values:
        raise InvalidSettingError(str(path), f"home is set by {_HOME} only, as this file lies in it")
    return {name: _value(name, value, source=str(path)) for name, value in values.items()}


def _from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    """Read the values of all variables with our prefix; an empty one counts as not set."""
    names = {
        variable: variable.removeprefix(_PREFIX).lower()
        for variable, value in environment.items()
        if variable.startswith(_PREFIX) and value and variable not in (_HOME, REPLAY)
    }
    return {name: _value(name, environment[variable], source=variable) for variable, name in names.items()}


def _value(name: str, value: object, *, source: str) -> object:
    """Return a value as the kind that its setting has.

    Raises:
        InvalidSettingError: there is no such setting, or it cannot have this value.
    """
    if name not in settable():
        raise InvalidSettingError(source, f"there is no setting {name!r}: there are {', '.join(settable())}")
    kind = next(field.type for field in msgspec.structs.fields(Settings) if field.name == name)
    try:
        return msgspec.convert(value, kind, strict=False, dec_hook=_path)
    except msgspec.ValidationError as error:
        wanted = next(meta.description for meta in get_args(kind) if isinstance(meta, Meta))
        raise InvalidSettingError(source, f"{name} must be {wanted}, not {value!r}") from error


def _path(kind: type, value: object) -> object:
    """Read the one kind of value that msgspec does not know."""
    if kind is Path and isinstance(value, str):
        return Path(value)
    message = f"expected a path, got {value!r}"
    raise ValueError(message)
