"""Settings of the command line: the only place that reads its environment."""

import os
import tomllib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Self

import msgspec

from domain.clock import utc_now
from domain.errors import BadRequestError
from domain.policy import DEFAULT_POLICY, Policy
from domain.rules import Rules

DEFAULT_HOME = Path(".lakeboard")
_PREFIX = "LAKEBOARD_"


class InvalidSettingError(BadRequestError):
    """A setting has a value that it cannot have, or does not exist."""

    def __init__(self, source: str, problem: str) -> None:
        super().__init__(source, problem)
        self.source = source
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.source}: {self.problem}; see docs/settings.md for the names and values"


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person may set, in `lakeboard.toml` of the home folder or as LAKEBOARD_<NAME>; the latter wins.

    Attributes:
        home: Where all state lives; LAKEBOARD_HOME only.
        driver_memory: Heap of Spark's driver.
        shuffle_partitions: Tasks after a shuffle in Spark.
        spark_master: Spark in this process, or a cluster.
        accelerator: Use the accelerator profile for Spark.
        java_home: Java for Spark instead of what set-up found.
        jars: Folder with the Delta jars instead of what set-up fetched.
        search_path: PATH, where Java is looked for last.
    """

    home: Path = DEFAULT_HOME
    driver_memory: str = "4g"
    shuffle_partitions: int = 4
    spark_master: str = "local[*]"
    accelerator: bool = False
    java_home: str | None = None
    jars: Path | None = None
    search_path: str = ""

    @classmethod
    def load(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Read the file, then the environment.

        Raises:
            InvalidSettingError: a value of the wrong kind, or a name that is no setting.
        """
        given = os.environ if environment is None else environment
        home = Path(given.get(f"{_PREFIX}HOME") or DEFAULT_HOME)
        values = _from_file(home / "lakeboard.toml") | _from_environment(given) | {"home": str(home)}
        values |= {"search_path": given.get("PATH", "")}
        values.setdefault("java_home", given.get("JAVA_HOME") or None)
        try:
            return msgspec.convert(values, cls, strict=False)
        except msgspec.ValidationError as error:
            problem = str(error)
            raise InvalidSettingError(str(home / "lakeboard.toml"), problem) from error

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


def _from_file(path: Path) -> dict[str, object]:
    if not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidSettingError(str(path), str(error)) from error


def _from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    return {
        name.removeprefix(_PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(_PREFIX) and value and name != f"{_PREFIX}HOME"
    }
