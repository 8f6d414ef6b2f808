"""Settings of the command line: the only place that reads its environment."""

import os
import tomllib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Self, get_args

import msgspec
from msgspec import Meta

from domain.clock import utc_now
from domain.errors import BadRequestError
from domain.policy import DEFAULT_POLICY, Policy
from domain.rules import Rules

DEFAULT_HOME = Path(".lakeboard")
FILE_NAME = "lakeboard.toml"
_PREFIX = "LAKEBOARD_"
_HOME = f"{_PREFIX}HOME"

# The description says what a person may write; errors repeat it.
_Memory = Annotated[str, Meta(pattern=r"^[1-9][0-9]*[kmgtKMGT]$", description="a size of memory such as 4g or 512m")]
_Tasks = Annotated[int, Meta(ge=1, description="a whole number from 1 on")]
_Master = Annotated[str, Meta(min_length=1, description="a Spark master such as local[*]")]
_YesOrNo = Annotated[bool, Meta(description="true or false")]
_JavaHome = Annotated[str | None, Meta(description="the path of a Java home")]
_Folder = Annotated[Path | None, Meta(description="the path of a folder")]


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
        search_path: PATH, where Java is looked for last; not a setting.
    """

    home: Path = DEFAULT_HOME
    driver_memory: _Memory = "4g"
    shuffle_partitions: _Tasks = 4
    spark_master: _Master = "local[*]"
    accelerator: _YesOrNo = False
    java_home: _JavaHome = None
    jars: _Folder = None
    search_path: str = ""

    @classmethod
    def load(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Read the file, then the environment.

        Raises:
            InvalidSettingError: a value of the wrong kind, or a name that is no setting.
        """
        unset = cls.unset(environment)
        chosen = _from_file(unset.home / FILE_NAME) | _from_environment(_given(environment))
        return msgspec.structs.replace(unset, **chosen)

    @classmethod
    def unset(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Return the settings of a machine on which nobody chose any: never fails."""
        given = _given(environment)
        home = Path(given.get(_HOME) or DEFAULT_HOME)
        return cls(home=home, java_home=given.get("JAVA_HOME") or None, search_path=given.get("PATH", ""))

    @property
    def lake_root(self) -> Path:
        """Folder of the lake."""
        return self.home / "lake"

    @property
    def rules_file(self) -> Path:
        """Where the counting rules stand; without the file every play counts."""
        return self.home / "rules.toml"

    @property
    def policy(self) -> Policy:
        """The numbers that all parts agree on."""
        return DEFAULT_POLICY

    def clock(self) -> datetime:
        """Tell the present moment, UTC."""
        return utc_now()

    def rules(self) -> Rules:
        """Read the counting rules.

        Raises:
            InvalidRulesError: the file says something that cannot be a rule.
        """
        return Rules.parse(self.rules_file.read_text(encoding="utf-8")) if self.rules_file.exists() else Rules()


def settable() -> tuple[str, ...]:
    """Return the names that a file or the environment may set, but for `home`."""
    return tuple(name for name in Settings.__struct_fields__ if name not in ("home", "search_path"))


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
        if variable.startswith(_PREFIX) and value and variable != _HOME
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
