"""The start-up guard: name a combination of versions that is known to go wrong, before anything is written.

Each rule here stands for a failure that shows late or never: a toPandas that hangs, the text 'nan' in place
of a missing string, a NoSuchMethodError in the middle of a commit.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from domain.errors import LakeboardError

PROJECT_ROOT = Path(__file__).parents[1]
SYSTEM_JAVA_FOLDER = Path("/usr/lib/jvm")
SUPPORTED_JAVA = (17, 21)
SCALA = "2.13"
# Artifacts that a session needs beside delta-spark itself; the first ones carry Delta's version.
DELTA_COMPANIONS = ("delta-storage", "delta-kernel-api", "delta-kernel-defaults", "delta-kernel-unitycatalog")
UNITY_CATALOG = "unitycatalog-client"
LOCAL_FILES = "hadoop-bare-naked-local-fs"
JAR_NAME = re.compile(r"(?P<artifact>.+)-(?P<version>\d+(?:\.\d+)+)\.jar")


class UnsupportedVersionsError(LakeboardError):
    """What is installed does not work together, so nothing was started and nothing was written.

    Attributes:
        problems: One sentence each, with the next step in it.
    """

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        return "; ".join(self.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """What a Spark session would be made of. `None` stands for what was not found.

    Attributes:
        java: Major version of the Java in `java_home`.
        java_home: Where that Java lives; None with a `java` of None means that there is none at all.
        jars: File names of the jars, without their folder.
    """

    java: int | None
    java_home: Path | None
    pyspark: str | None
    delta_spark: str | None
    pandas: str | None
    jars: tuple[str, ...]


def release(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version, to compare by: `4.1.2rc1` is (4, 1, 2)."""
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, numbers[0].split("."))) if numbers else ()


def java_version(java_home: Path) -> int | None:
    """Return the major version a Java names when it is asked, or None if it does not run.

    Java 8 and older call themselves 1.8 and the like; their major version is the second number.
    """
    try:
        command = [str(java_home / "bin" / "java"), "-version"]
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', answer)
    return int(found[1]) if found else None


def recorded_java(project_root: Path) -> Iterator[Path]:
    """Yield the Java that `make setup` chose, if it is still there."""
    record = project_root / ".venv" / "java_home"
    if record.is_file():
        yield Path(record.read_text(encoding="utf-8").strip())


def installed_javas(search_path: str | None) -> Iterator[Path]:
    """Yield the homes of the `java` on the search path and of those in the system's folder."""
    found = shutil.which("java", path=search_path) if search_path else None
    if found:
        yield Path(found).resolve().parents[1]
    yield from sorted(home for home in SYSTEM_JAVA_FOLDER.glob("*") if (home / "bin" / "java").is_file())


def first_supported(java_homes: Iterable[Path]) -> Path | None:
    """Return the first home whose Java Spark runs on, else the first that runs at all, else None."""
    running = ((home, java_version(home)) for home in java_homes)
    others: list[Path] = []
    for home, version in running:
        if version in SUPPORTED_JAVA:
            return home
        if version is not None:
            others.append(home)
    return others[0] if others else None


def find_java_home(
    project_root: Path = PROJECT_ROOT, *, java_home: str | None = None, search_path: str | None = None
) -> Path | None:
    """Return the Java that a session has to use, or None if there is none.

    A `JAVA_HOME` that somebody set is an order and is taken as it is: if Spark can't run on it, the guard
    says so. Otherwise set-up's choice comes first, then what is installed.

    Args:
        project_root: Folder that holds `.venv`.
        java_home: Value of JAVA_HOME, empty or None when unset.
        search_path: Value of PATH.
    """
    if java_home:
        return Path(java_home)
    candidates = [*recorded_java(project_root), *installed_javas(search_path)]
    return first_supported(candidates)


def jar_paths(project_root: Path = PROJECT_ROOT, *, jars: Path | None = None) -> list[Path]:
    """Return the Delta jars in name order; empty where set-up has not run.

    Args:
        project_root: Folder that holds `.jars`.
        jars: Folder to take instead (LAKEBOARD_JARS).
    """
    return sorted((jars or project_root / ".jars").glob("*.jar"))


def accelerator_jars(project_root: Path = PROJECT_ROOT, *, jars: Path | None = None) -> list[Path]:
    """Return the jars of the optional accelerator profile; empty unless `make accelerator` has run."""
    return jar_paths(jars=(jars or project_root / ".jars") / "accelerator")


def installed_version(package: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def found_versions(*, java_home: Path | None, jars: Iterable[Path]) -> Versions:
    """Look up what a session would be made of.

    Args:
        java_home: What `find_java_home` returned.
        jars: What `jar_paths` returned.
    """
    return Versions(
        java=java_version(java_home) if java_home else None,
        java_home=java_home,
        pyspark=installed_version("pyspark"),
        delta_spark=installed_version("delta-spark"),
        pandas=installed_version("pandas"),
        jars=tuple(jar.name for jar in jars),
    )


def java_problems(found: Versions) -> Iterator[str]:
    """Spark 4.1 runs on Java 17 and 21 only."""
    step = "unset JAVA_HOME or point it to Java 17, or run `make setup`"
    if found.java_home is None:
        yield "no Java was found, and Spark needs Java 17: run `make setup`"
    elif found.java is None:
        yield f"there is no Java that runs in {found.java_home}: {step}"
    elif found.java not in SUPPORTED_JAVA:
        why = "Arrow cannot initialise and toPandas hangs" if found.java > max(SUPPORTED_JAVA) else "it is too old"
        yield f"Java {found.java} in {found.java_home} does not work with Spark 4.1 ({why}): {step}"


def package_problems(found: Versions) -> Iterator[str]:
    """The Python packages must be there, and pandas below 3."""
    for package, version in (("pyspark", found.pyspark), ("delta-spark", found.delta_spark)):
        if version is None:
            yield f"the package {package} is not installed: run `make setup`"
    if found.pandas is not None and release(found.pandas) >= (3,):
        yield (
            f"pandas {found.pandas} turns a missing string into the text 'nan' on its way into Spark without "
            "Arrow: run `make setup` to get the locked version below 3"
        )


def delta_problems(found: Versions) -> Iterator[str]:
    """Delta up to 4.2 needs what Spark removed in 4.1.2; it fails in the middle of OPTIMIZE or ALTER."""
    if found.pyspark is None or found.delta_spark is None:
        return
    if release(found.delta_spark) < (4, 3) and release(found.pyspark) >= (4, 1, 2):
        yield (
            f"delta-spark {found.delta_spark} breaks on Spark {found.pyspark} (4.1.2 and later need "
            "delta-spark 4.3 or newer): run `make setup` to get the locked pair"
        )


def jar_versions(names: Iterable[str]) -> dict[str, set[str]]:
    """Return the versions of each artifact among jar file names: more than one means leftovers."""
    versions: dict[str, set[str]] = {}
    for name in names:
        if parts := JAR_NAME.fullmatch(name):
            versions.setdefault(parts["artifact"], set()).add(parts["version"])
    return versions


def wanted_jars(pyspark: str, delta_spark: str) -> dict[str, str | None]:
    """Return the artifacts this pair needs with the version each must have; None leaves it open."""
    engine = f"delta-spark_{'.'.join(pyspark.split('.')[:2])}_{SCALA}"
    return {**dict.fromkeys((engine, *DELTA_COMPANIONS), delta_spark), UNITY_CATALOG: None, LOCAL_FILES: None}


def suffix_problems(present: dict[str, set[str]], engine: str) -> Iterator[str]:
    """A delta-spark jar for another Spark loads and then fails; one without a suffix is for a newer one."""
    step = f"run `make setup` to get {engine}"
    for artifact in sorted(present):
        if artifact == f"delta-spark_{SCALA}":
            yield f"the jar {artifact} names no Spark version and is built for another: {step}"
        elif artifact.startswith("delta-spark_") and artifact != engine:
            yield f"the jar {artifact} is built for another Spark: {step}"


def jar_version_problems(present: dict[str, set[str]], wanted: dict[str, str | None]) -> Iterator[str]:
    """Each artifact must be there once, in the version of the delta-spark package."""
    step = "run `make setup`"
    missing = [artifact for artifact in wanted if artifact not in present]
    if missing:
        yield f"jars are missing ({', '.join(missing)}): {step}"
    for artifact, version in wanted.items():
        versions = present.get(artifact, set())
        if len(versions) > 1:
            yield f"the jar {artifact} is there in versions {', '.join(sorted(versions))}: {step}"
        elif version is not None and versions not in (set(), {version}):
            yield f"the jar {artifact} is {min(versions)}, but the delta-spark package is {version}: {step}"


def jar_problems(found: Versions) -> Iterator[str]:
    """The jars must be those of this Spark and this Delta."""
    if found.pyspark is None or found.delta_spark is None:
        return
    present = jar_versions(found.jars)
    wanted = wanted_jars(found.pyspark, found.delta_spark)
    yield from suffix_problems(present, next(iter(wanted)))
    yield from jar_version_problems(present, wanted)


def check_versions(found: Versions) -> list[str]:
    """Return what is wrong, one sentence each with its next step; empty when a session may start."""
    return [
        *java_problems(found),
        *package_problems(found),
        *delta_problems(found),
        *jar_problems(found),
    ]


def require_supported_versions(found: Versions) -> None:
    """Let a session start only on a combination that is known to work.

    Raises:
        UnsupportedVersionsError: Something does not fit; it lists everything at once.
    """
    if problems := check_versions(found):
        raise UnsupportedVersionsError(tuple(problems))
