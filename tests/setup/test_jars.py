"""The real script of the jars, with a Java that fetches from a folder in place of the network."""

import hashlib
import os
from pathlib import Path

import pytest

from jobs.guard import check_versions, found_versions
from tests.setup.scripts import ROOT, program, ran, tree

pytestmark = pytest.mark.fast

NAMES = ("delta-kernel-api-4.4.0.jar", "delta-storage-4.4.0.jar", "unitycatalog-client-0.6.0.jar")
# Ivy is called with the pattern of the files to make as its last argument.
FETCH = 'cp "$FETCHED"/* "$(dirname "${@: -1}")/"'


def content_of(name: str) -> bytes:
    return b"the jar " + name.encode()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A set-up whose list names three jars, and a source that has them as listed."""
    folder = tree(tmp_path / "project", "common.sh", "jars.sh")
    (folder / "setup" / "jars").mkdir()
    listed = "".join(f"{hashlib.sha256(content_of(name)).hexdigest()}  {name}\n" for name in NAMES)
    (folder / "setup" / "jars" / "jars.sha256").write_text(listed, encoding="utf-8")
    (folder / "setup" / "jars" / "jars.xml").touch()
    ivy = folder / ".venv/lib/python3.11/site-packages/pyspark/jars/ivy-2.5.3.jar"
    ivy.parent.mkdir(parents=True)
    ivy.touch()
    java = program(tmp_path / "java" / "bin" / "java", FETCH)
    (folder / ".venv" / "java_home").write_text(str(java.parents[1]), encoding="utf-8")
    filled(source(folder))
    return folder


def filled(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name in NAMES:
        (folder / name).write_bytes(content_of(name))


def source(project: Path) -> Path:
    return project.parent / "fetched"


def provide(project: Path) -> tuple[int, str]:
    """Return how set-up of the jars ended and what it said."""
    variables = {"FETCHED": str(source(project))}
    result = ran(project, "provide_jars jars .jars", path=os.environ["PATH"], variables=variables)
    return result.returncode, result.stdout + result.stderr


def jars(project: Path) -> dict[str, bytes]:
    return {jar.name: jar.read_bytes() for jar in (project / ".jars").glob("*.jar")}


def test_jars_that_are_as_listed_are_taken_and_not_fetched_again(project: Path) -> None:
    assert provide(project) == (0, "setup: resolving 3 jars of setup/jars/jars.xml\n")
    assert jars(project) == {name: content_of(name) for name in NAMES}
    assert provide(project) == (0, "")


def test_a_fetched_jar_with_another_hash_is_refused_by_name_and_nothing_is_kept(project: Path) -> None:
    (source(project) / NAMES[1]).write_bytes(b"something else")

    code, said = provide(project)

    (sentence,) = (line for line in said.splitlines() if "refused" in line)
    assert code == 1
    assert sentence.startswith("setup: refused delta-storage-4.4.0.jar: absent, or not of the SHA-256 in setup/jars/")
    assert "Repeat; if it happens again" in sentence
    assert jars(project) == {}
    assert not (project / ".jars" / ".incoming").exists()
    assert not (project / ".jars" / ".ivy").exists()


def test_a_jar_that_did_not_come_is_named(project: Path) -> None:
    (source(project) / NAMES[0]).unlink()

    code, said = provide(project)

    assert code == 1
    assert "refused delta-kernel-api-4.4.0.jar: absent" in said
    assert jars(project) == {}


def test_a_jar_in_place_that_was_tampered_with_is_named_and_replaced(project: Path) -> None:
    provide(project)
    (project / ".jars" / NAMES[2]).write_bytes(content_of(NAMES[2]) + b"!")

    code, said = provide(project)

    assert code == 0
    assert ".jars/unitycatalog-client-0.6.0.jar is not what setup/jars/jars.sha256 says (SHA-256)" in said
    assert jars(project) == {name: content_of(name) for name in NAMES}


def test_without_a_network_a_tampered_jar_does_not_stay_in_place(project: Path) -> None:
    provide(project)
    (project / ".jars" / NAMES[2]).write_bytes(b"!")
    program(project.parent / "java" / "bin" / "java", "echo no route to host >&2; exit 1")

    code, said = provide(project)

    assert code == 1
    assert "the jars of setup/jars/jars.xml could not be resolved: check the network, then repeat." in said
    assert sorted(jars(project)) == sorted(NAMES[:2])


def test_a_jar_that_nobody_listed_is_not_taken_along(project: Path) -> None:
    (source(project) / "extra-1.0.jar").touch()
    provide(project)
    (project / ".jars" / "left-over-4.3.1.jar").touch()

    assert provide(project)[0] == 0

    assert sorted(jars(project)) == sorted(NAMES)


def test_the_real_list_names_the_jars_that_the_guard_wants() -> None:
    lines = (ROOT / "setup" / "jars" / "jars.sha256").read_text(encoding="utf-8").splitlines()
    digests, names = zip(*(line.split("  ") for line in lines), strict=True)

    assert {len(digest) for digest in digests} == {64}
    found = found_versions(java_home=None, jars=map(Path, names))
    assert [problem for problem in check_versions(found) if "Java" not in problem] == []
