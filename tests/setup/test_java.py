"""The real script that looks for Java, on machines made of a few links."""

from pathlib import Path

import pytest

from tests.setup.scripts import bare_path, program, ran, tree

pytestmark = pytest.mark.fast

TOOLS = ("awk", "cat", "id", "ls", "tail", "env")
NO_JAVA = (
    "setup: Spark needs Java 17 or 21: install one (Debian, Ubuntu: apt-get install openjdk-17-jre-headless) "
    "or set JAVA_HOME to one, then repeat."
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tree(tmp_path / "project", "common.sh", "java.sh")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    return bare_path(tmp_path / "programs", TOOLS)


def java(home: Path, version: int) -> Path:
    """A Java that tells its home and version, as all of them do on standard error."""
    facts = f"    java.home = {home}\n    java.specification.version = {version}"
    program(home / "bin" / "java", f"echo '{facts}' >&2")
    return home


def choose(project: Path, programs: Path, **variables: str) -> tuple[int, list[str], list[str]]:
    """Return how the choice ended, what it said, and what it said of errors."""
    commands = 'SYSTEM_JAVAS="$PWD/javas"; as_root() { "$@"; }; choose_java'
    result = ran(project, commands, path=programs, variables=variables)
    return result.returncode, result.stdout.splitlines(), result.stderr.splitlines()


def chosen(project: Path) -> str:
    return (project / ".venv" / "java_home").read_text(encoding="utf-8").strip()


def test_without_java_and_apt_one_sentence_says_how_to_get_it(project: Path, programs: Path) -> None:
    assert choose(project, programs) == (1, ["setup: no Java 17 or 21 found"], [NO_JAVA])
    assert not (project / ".venv" / "java_home").exists()


def test_a_java_that_spark_does_not_run_on_is_named_and_passed_over(project: Path, programs: Path) -> None:
    newest = java(project / "javas" / "java-25", 25)

    code, _, errors = choose(project, programs)

    assert code == 1
    assert errors == [f"setup: passing over Java 25 in {newest}: Spark 4.1 needs Java 17 or 21", NO_JAVA]


def test_a_java_of_the_system_is_chosen_and_recorded(project: Path, programs: Path) -> None:
    java(project / "javas" / "java-11", 11)
    home = java(project / "javas" / "java-17", 17)

    code, said, _ = choose(project, programs)

    assert (code, said) == (0, [f"setup: using the Java in {home}"])
    assert chosen(project) == str(home)
    assert choose(project, programs)[:2] == (0, [])  # a second set-up has nothing to say


def test_the_java_that_somebody_set_comes_first(project: Path, programs: Path) -> None:
    java(project / "javas" / "java-17", 17)
    home = java(project / "mine", 21)

    assert choose(project, programs, JAVA_HOME=str(home))[0] == 0

    assert chosen(project) == str(home)


def test_where_there_is_apt_it_is_asked_for_java(project: Path, programs: Path) -> None:
    home = project / "javas" / "java-17"
    staged = java(project / "staged", 17)
    (staged / "bin" / "java").write_text((staged / "bin" / "java").read_text().replace(str(staged), str(home)))
    for tool in ("cp", "mkdir"):
        (programs / tool).symlink_to(Path("/bin") / tool)
    install = f'if [ "$1" = install ]; then mkdir -p {project}/javas && cp -r {staged} {home}; fi'
    program(programs / "apt-get", install)

    code, said, _ = choose(project, programs)

    assert code == 0, said
    assert "setup: installing openjdk-17-jre-headless with apt-get" in said
    assert chosen(project) == str(home)


def test_where_apt_fails_its_words_are_shown_and_the_sentence_too(project: Path, programs: Path) -> None:
    program(programs / "apt-get", 'echo "E: no network"; exit 100')

    code, _, errors = choose(project, programs)

    assert code == 1
    assert errors == ["E: no network", NO_JAVA]
