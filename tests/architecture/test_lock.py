import re
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
ADDRESS = re.compile(r"https?:|file:|git\+|--index|--extra-index|--find-links|--trusted-host| @ ")


def entries(lock: str) -> list[str]:
    """One text a package: its first line, and the hashes that follow it."""
    without_comments = re.sub(r"^\s*#.*\n?", "", lock, flags=re.MULTILINE)
    return [entry for entry in re.split(r"\n(?=\S)", without_comments) if entry.strip()]


def locked(lock: str) -> dict[str, str]:
    """The locked version of each package by its normal name."""
    pairs = (entry.split()[0].split("==") for entry in entries(lock))
    return {normal(name): version for name, version in pairs}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def drift(lock: str, installed: dict[str, str]) -> list[str]:
    """What is installed in another version than locked, or not at all."""
    return [
        f"{name}: locked {version}, installed {installed.get(name, 'not at all')}"
        for name, version in locked(lock).items()
        if installed.get(name) != version
    ]


def without_hash(lock: str) -> list[str]:
    return [entry.split()[0] for entry in entries(lock) if not re.search(r"--hash=sha256:[0-9a-f]{64}", entry)]


def asked_for(lines: Iterable[str]) -> dict[str, str]:
    """The pins of requirements.in."""
    texts = (line.split("#")[0].strip() for line in lines)
    wanted = (Requirement(text) for text in texts if text)
    return {normal(requirement.name): str(requirement.specifier).removeprefix("==") for requirement in wanted}


def test_what_is_installed_is_what_is_locked() -> None:
    installed = {normal(found.name): found.version for found in metadata.distributions()}

    assert drift(LOCK, installed) == [], "run `make setup`, or `make lock` after a change of requirements.in"


def test_drift_names_the_package_and_both_versions() -> None:
    lock = "delta-spark==4.4.0 \\\n    --hash=sha256:00\nimportlib-metadata==8.7.1 \\\n    --hash=sha256:11\n"

    assert drift(lock, {"delta-spark": "4.1.0"}) == [
        "delta-spark: locked 4.4.0, installed 4.1.0",
        "importlib-metadata: locked 8.7.1, installed not at all",
    ]


def test_every_entry_of_the_lock_has_hashes() -> None:
    assert len(entries(LOCK)) > 30
    assert without_hash(LOCK) == []


def test_an_entry_without_a_hash_is_noticed() -> None:
    lock = f"click==8.5.1 \\\n    --hash=sha256:{'0' * 64}\n    # via here\nrich==15.0.0\n    # via there\n"

    assert without_hash(lock) == ["rich==15.0.0"]


def test_the_lock_names_no_address() -> None:
    assert ADDRESS.findall(LOCK) == []
    assert ADDRESS.findall("--index-url https://example.org/simple") == ["--index", "https:"]


def test_every_pin_of_requirements_in_is_locked_as_it_stands() -> None:
    pins = asked_for((ROOT / "requirements.in").read_text(encoding="utf-8").splitlines())

    assert pins["delta-spark"] == "4.4.0"
    assert {name: version for name, version in locked(LOCK).items() if name in pins} == pins
