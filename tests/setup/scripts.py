"""Runs functions of the real set-up scripts in a folder of their own, with only the programs that a test gives them."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
BASH = shutil.which("bash") or "/bin/bash"


def tree(folder: Path, *scripts: str) -> Path:
    """A project with these scripts of set-up and nothing else."""
    (folder / "setup").mkdir(parents=True)
    (folder / ".venv").mkdir()
    for script in scripts:
        shutil.copy(ROOT / "setup" / script, folder / "setup" / script)
    return folder


def program(path: Path, script: str) -> Path:
    """A program that does what a few lines of shell say."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{BASH}\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def bare_path(folder: Path, names: Iterable[str]) -> Path:
    """A folder for PATH with these programs of the system alone: no Java, no apt, no sudo."""
    folder.mkdir()
    for name in names:
        found = shutil.which(name)
        assert found is not None, name
        (folder / name).symlink_to(found)
    return folder


def ran(
    project: Path, commands: str, *, path: str | Path, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run shell commands in a project as `setup.sh` would: an error ends it."""
    sources = " ".join(f". setup/{script.name};" for script in sorted((project / "setup").glob("*.sh")))
    environment = {"PATH": str(path), "HOME": str(project), "LANG": os.environ.get("LANG", "C"), **(variables or {})}
    command = [BASH, "-c", f"set -euo pipefail; {sources} {commands}"]
    return subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
