import subprocess
import sys
from pathlib import Path

import pytest

from jobs.guard import UnsupportedVersionsError
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


@pytest.mark.e2e
def test_a_spark_that_cannot_start_is_one_sentence_and_a_log(tmp_path: Path) -> None:
    home, plays = tmp_path / "home", tmp_path / "plays.csv"
    plays.write_text("i,t\na,2024-01-01\n", encoding="utf-8")
    java_home = Path(sys.prefix, "java_home").read_text(encoding="utf-8").strip()
    environment = {"LAKEBOARD_HOME": str(home), "PATH": "/usr/bin:/bin", "JAVA_HOME": java_home,
                   "LAKEBOARD_DRIVER_MEMORY": "999999t"}  # fmt: skip

    def lakeboard(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=120
        )

    assert lakeboard("import", str(plays), "--item", "i", "--time", "t").returncode == 0
    result = lakeboard("recount")

    (log,) = (home / "logs").iterdir()
    said = result.stderr.splitlines()[-1]
    assert result.returncode == 1
    assert said.startswith("lakeboard: Spark failed ([JAVA_GATEWAY_EXITED]")
    assert str(log) in said
    assert "Traceback" in log.read_text(encoding="utf-8")
    assert "Traceback" not in result.stderr
