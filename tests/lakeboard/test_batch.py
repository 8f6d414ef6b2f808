import subprocess
import sys
from pathlib import Path

import pytest

from jobs.guard import UnsupportedVersionsError, jar_paths
from lakeboard import batch
from lakeboard.batch import AcceleratorMissingError, batch_settings
from lakeboard.settings import Settings

PROGRAM = Path(sys.executable).with_name("lakeboard")


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one jar, and a guard that lets everything pass."""
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "delta.jar").touch()
    monkeypatch.setattr(batch, "require_supported_versions", lambda _: None)
    monkeypatch.setattr(batch, "found_versions", lambda **_: None)
    return tmp_path / "jars"


def settings_of(jars: Path, *, accelerator: bool) -> Settings:
    return Settings(
        home=jars.parent / "home", jars=jars, java_home="/java", accelerator=accelerator, driver_memory="1g"
    )


@pytest.mark.fast
def test_the_accelerator_without_its_jar_is_refused_before_anything_is_made(jars: Path) -> None:
    with pytest.raises(AcceleratorMissingError, match="run `make accelerator`"):
        batch_settings(settings_of(jars, accelerator=True))

    assert not (jars.parent / "home").exists()


@pytest.mark.fast
@pytest.mark.parametrize("accelerator", [False, True])
def test_the_accelerators_jar_is_taken_only_when_it_is_on(jars: Path, accelerator: bool) -> None:
    (jars / "accelerator").mkdir()
    (jars / "accelerator" / "comet.jar").touch()

    given = batch_settings(settings_of(jars, accelerator=accelerator))

    assert [jar.name for jar in given.jars] == ["delta.jar", *(["comet.jar"] if accelerator else [])]
    assert given.accelerator is accelerator
    assert (given.java_home, given.driver_memory) == (Path("/java"), "1g")
    assert given.scratch.is_dir()


@pytest.mark.fast
def test_a_pair_that_does_not_work_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedVersionsError, match="no Java that runs in /nowhere"):
        batch_settings(Settings(home=tmp_path / "home", java_home="/nowhere"))

    assert not (tmp_path / "home").exists()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with two plays in its lake, not counted yet and in a file each, so that there is something to compact."""
    files = [tmp_path / "one.csv", tmp_path / "other.csv"]
    for file in files:
        file.write_text("i,t\na,2024-01-01\n", encoding="utf-8")
    imported = lakeboard(tmp_path / "home", "import", *map(str, files), "--item", "i", "--time", "t")
    assert imported.returncode == 0
    return tmp_path / "home"


def lakeboard(home: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    java_home = Path(sys.prefix, "java_home").read_text(encoding="utf-8").strip()
    environment = {"LAKEBOARD_HOME": str(home), "PATH": "/usr/bin:/bin", "JAVA_HOME": java_home, **variables}
    return subprocess.run(
        [PROGRAM, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def files_of(home: Path) -> dict[str, tuple[bytes, int]]:
    """Every file below a folder: its bytes and when it was written."""
    return {
        str(file.relative_to(home)): (file.read_bytes(), file.stat().st_mtime_ns)
        for file in home.rglob("*")
        if file.is_file()
    }


@pytest.mark.e2e
@pytest.mark.parametrize("command", ["recount", "maintain"])
def test_a_wrong_pair_is_named_before_anything_is_written(home: Path, tmp_path: Path, command: str) -> None:
    (tmp_path / "jars").mkdir()
    for jar in jar_paths():
        (tmp_path / "jars" / jar.name.replace("delta-spark_4.1_2.13", "delta-spark_2.13")).symlink_to(jar)
    before = files_of(home)

    result = lakeboard(home, command, LAKEBOARD_JARS=str(tmp_path / "jars"))

    said = [line for line in result.stderr.splitlines() if line.startswith("lakeboard: ")]
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1:] == said
    assert "the jar delta-spark_2.13 names no Spark version and is built for another: run `make setup`" in said[0]
    assert "Traceback" not in result.stderr
    assert files_of(home) == before


@pytest.mark.e2e
def test_a_spark_that_cannot_start_is_one_sentence_and_a_log(home: Path) -> None:
    result = lakeboard(home, "recount", LAKEBOARD_DRIVER_MEMORY="999999t")

    (log,) = (home / "logs").iterdir()
    said = result.stderr.splitlines()[-1]
    assert result.returncode == 1
    assert said.startswith("lakeboard: Spark failed ([JAVA_GATEWAY_EXITED]")
    assert str(log) in said
    assert "Traceback" in log.read_text(encoding="utf-8")
    assert "Traceback" not in result.stderr
