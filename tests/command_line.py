"""Runs one command in this process, with a lake in place of the settings that `lakeboard/cli.py` builds."""

from dataclasses import dataclass
from pathlib import Path

import click
from click.testing import CliRunner, Result

from domain.policy import DEFAULT_POLICY, Policy


@dataclass(frozen=True, slots=True)
class SettingsOfATest:
    """What the reading commands take from the settings."""

    lake_root: Path
    policy: Policy = DEFAULT_POLICY


def said(command: click.Command, lake_root: Path, *arguments: str, text: str | None = None) -> str:
    """Return what a command prints when it succeeds."""
    result = ran(command, lake_root, *arguments, text=text)
    if result.exception is not None:
        raise result.exception
    return result.stdout


def ran(command: click.Command, lake_root: Path, *arguments: str, text: str | None = None) -> Result:
    """Return how a command ended; our errors are in `exception`, as the group is what words them."""
    return CliRunner().invoke(command, arguments, obj=SettingsOfATest(lake_root), input=text)
