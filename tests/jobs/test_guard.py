import pickle
import stat
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from jobs.guard import (
    UnsupportedVersionsError,
    Versions,
    accelerator_jars,
    check_versions,
    find_java_home,
    found_versions,
    jar_paths,
    java_version,
    release,
    require_supported_versions,
)

pytestmark = pytest.mark.fast

JARS = (
    "delta-kernel-api-4.4.0.jar",
    "delta-kernel-defaults-4.4.0.jar",
    "delta-kernel-unitycatalog-4.4.0.jar",
    "delta-spark_4.1_2.13-4.4.0.jar",
    "delta-storage-4.4.0.jar",
    "hadoop-bare-naked-local-fs-0.1.0.jar",
    "unitycatalog-client-0.6.0.jar",
)
GOOD = Versions(
    java=17,
    java_home=Path("/opt/java-17"),
    pyspark="4.1.4",
    delta_spark="4.4.0",
    pandas="2.3.3",
    jars=JARS,
)


def with_jar(old: str, new: str) -> tuple[str, ...]:
    return tuple(new if jar == old else jar for jar in JARS)


def fake_java(home: Path, version_line: str) -> Path:
    """A `java` that only knows its version, as all of them tell it: on standard error."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{version_line}' >&2\n", encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return home


def test_the_locked_combination_has_no_problems() -> None:
    assert check_versions(GOOD) == []
    assert check_versions(replace(GOOD, java=21)) == []


WRONG_PAIRS = {
    "java 25": (replace(GOOD, java=25), "Java 25 in /opt/java-17", "Arrow cannot initialise"),
    "java 11": (replace(GOOD, java=11), "Java 11", "too old"),
    "java that does not run": (replace(GOOD, java=None), "no Java that runs in /opt/java-17", "JAVA_HOME"),
    "no java": (replace(GOOD, java=None, java_home=None), "no Java was found", "make setup"),
    "pandas 3": (replace(GOOD, pandas="3.1.1"), "pandas 3.1.1", "'nan'"),
    "no pyspark": (replace(GOOD, pyspark=None), "pyspark is not installed", "make setup"),
    "no delta": (replace(GOOD, delta_spark=None), "delta-spark is not installed", "make setup"),
    "jar without suffix": (
        replace(GOOD, jars=(*JARS, "delta-spark_2.13-4.4.0.jar")),
        "delta-spark_2.13 names no Spark version",
        "delta-spark_4.1_2.13",
    ),
    "jar of another Spark": (
        replace(GOOD, jars=(*JARS, "delta-spark_4.2_2.13-4.4.0.jar")),
        "delta-spark_4.2_2.13 is built for another Spark",
        "make setup",
    ),
    "missing jar": (
        replace(GOOD, jars=tuple(jar for jar in JARS if "storage" not in jar)),
        "jars are missing (delta-storage)",
        "make setup",
    ),
    "companion of another Delta": (
        replace(GOOD, jars=with_jar("delta-storage-4.4.0.jar", "delta-storage-4.3.1.jar")),
        "delta-storage is 4.3.1, but the delta-spark package is 4.4.0",
        "make setup",
    ),
    "leftover jar": (
        replace(GOOD, jars=(*JARS, "delta-storage-4.3.1.jar")),
        "delta-storage is there in versions 4.3.1, 4.4.0",
        "make setup",
    ),
}


@pytest.mark.parametrize(("found", "names", "explains"), WRONG_PAIRS.values(), ids=WRONG_PAIRS.keys())
def test_a_wrong_pair_is_named_in_one_sentence_with_a_next_step(found: Versions, names: str, explains: str) -> None:
    problems = check_versions(found)

    assert len(problems) == 1
    assert names in problems[0]
    assert explains in problems[0]


@pytest.mark.parametrize(
    ("pyspark", "delta", "fits"),
    [
        ("4.1.1", "4.2.0", True),
        ("4.1.2", "4.2.0", False),
        ("4.1.4", "4.2.0", False),
        ("4.1.4", "4.1.0", False),
        ("4.1.4", "4.3.0", True),
        ("4.1.10", "4.4.0", True),
    ],
)
def test_delta_up_to_4_2_is_refused_on_spark_from_4_1_2(pyspark: str, delta: str, fits: bool) -> None:
    jars = tuple(jar.replace("4.4.0", delta) for jar in JARS)

    problems = check_versions(replace(GOOD, pyspark=pyspark, delta_spark=delta, jars=jars))

    assert (problems == []) is fits
    assert fits or f"delta-spark {delta} breaks on Spark {pyspark}" in problems[0]


def test_a_spark_of_another_minor_version_does_not_take_these_jars() -> None:
    problems = check_versions(replace(GOOD, pyspark="4.2.0"))

    assert "the jar delta-spark_4.1_2.13 is built for another Spark" in problems[0]
    assert "jars are missing (delta-spark_4.2_2.13)" in problems[1]


def test_versions_compare_as_numbers() -> None:
    assert release("4.10.0") > release("4.9.3")
    assert release("4.1.2rc1") == (4, 1, 2)
    assert release("3") >= (3,)


def test_everything_wrong_is_told_at_once_and_survives_pickling() -> None:
    with pytest.raises(UnsupportedVersionsError, match=r"Java 25.*pandas 3\.0\.0") as caught:
        require_supported_versions(replace(GOOD, java=25, pandas="3.0.0"))

    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes
    assert again.problems == caught.value.problems
    assert str(again) == str(caught.value)


def test_a_good_combination_may_start() -> None:
    require_supported_versions(GOOD)

    assert check_versions(GOOD) == []


@pytest.mark.parametrize(
    ("line", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25.0.3" 2026-04-21 LTS', 25),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("no idea", None),
    ],
)
def test_java_is_asked_for_its_major_version(tmp_path: Path, line: str, major: int | None) -> None:
    assert java_version(fake_java(tmp_path / "java", line)) == major


def test_a_java_that_is_not_there_has_no_version(tmp_path: Path) -> None:
    assert java_version(tmp_path) is None


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose set-up has chosen a Java 17."""
    chosen = fake_java(tmp_path / "chosen", 'openjdk version "17.0.15"')
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "java_home").write_text(f"{chosen}\n", encoding="utf-8")
    return tmp_path


def test_an_explicit_java_home_is_an_order_even_when_spark_cannot_run_on_it(project: Path) -> None:
    java_25 = fake_java(project / "java-25", 'openjdk version "25.0.3"')

    home = find_java_home(project, java_home=str(java_25))
    problems = check_versions(replace(GOOD, java=found_versions(java_home=home, jars=[]).java, java_home=home))

    assert home == java_25
    assert len(problems) == 1
    assert f"Java 25 in {java_25}" in problems[0]


def test_without_java_home_the_choice_of_set_up_is_taken(project: Path) -> None:
    on_path = fake_java(project / "java-21", 'openjdk version "21.0.1"') / "bin"

    assert find_java_home(project, java_home="", search_path=str(on_path)) == project / "chosen"


def test_an_unsupported_java_is_passed_over_for_a_supported_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = fake_java(tmp_path / "path" / "java-11", 'openjdk version "11.0.2"')
    good = fake_java(tmp_path / "jvm" / "java-21", 'openjdk version "21.0.1"')
    monkeypatch.setattr("jobs.guard.SYSTEM_JAVA_FOLDER", tmp_path / "jvm")

    assert find_java_home(tmp_path, search_path=str(old / "bin")) == good


def test_the_only_java_is_named_even_if_unsupported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only = fake_java(tmp_path / "java-25", 'openjdk version "25.0.3"')
    monkeypatch.setattr("jobs.guard.SYSTEM_JAVA_FOLDER", tmp_path / "empty")

    assert find_java_home(tmp_path, search_path=str(only / "bin")) == only
    assert find_java_home(tmp_path, search_path=str(tmp_path)) is None


def test_jars_come_in_name_order_from_the_ignored_folder_or_the_given_one(tmp_path: Path) -> None:
    for folder in (tmp_path / ".jars", tmp_path / ".jars" / "accelerator", tmp_path / "elsewhere"):
        folder.mkdir()
        for name in ("b-1.0.jar", "a-1.0.jar", "notes.txt"):
            (folder / f"{folder.name}-{name}").touch()

    assert [jar.name for jar in jar_paths(tmp_path)] == [".jars-a-1.0.jar", ".jars-b-1.0.jar"]
    assert [jar.name for jar in jar_paths(tmp_path, jars=tmp_path / "elsewhere")] == [
        "elsewhere-a-1.0.jar",
        "elsewhere-b-1.0.jar",
    ]
    assert [jar.parent.name for jar in accelerator_jars(tmp_path)] == ["accelerator", "accelerator"]
    assert jar_paths(tmp_path / "nowhere") == []


def test_what_is_found_are_the_installed_packages_and_the_names_of_the_jars(project: Path) -> None:
    found = found_versions(java_home=project / "chosen", jars=[Path("/x/delta-storage-4.4.0.jar")])

    assert found == Versions(
        java=17,
        java_home=project / "chosen",
        pyspark=metadata.version("pyspark"),
        delta_spark=metadata.version("delta-spark"),
        pandas=metadata.version("pandas"),
        jars=("delta-storage-4.4.0.jar",),
    )
