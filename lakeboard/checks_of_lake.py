"""Checks of the lake: what is there, what is released, what a killed run left, what is not counted. Only reads."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from deltalake import DeltaTable

from domain.position import PositionWentBackError
from domain.releases import Release
from domain.rules import InvalidRulesError, Rules
from domain.tables import ALL, DERIVED, PLAYS
from ingest.delta_log import newest_version
from ingest.lake_reader import newest_release
from ingest.lake_writer import bronze_position
from lakeboard.checks import Check, State
from lakeboard.commands.reading import clock_time
from lakeboard.settings import Settings

READER_VERSION = 1
OLD_FRONTIER = timedelta(days=1)
RECOUNT = "run `lakeboard recount`"
LOOK_UP = "see docs/when-something-fails.md"


def rules(settings: Settings) -> Iterator[Check]:
    """Whether the counting rules can be read, and which one is in force now."""
    try:
        valid = settings.rules()
    except InvalidRulesError as error:
        yield Check("rules.toml", State.PROBLEM, error.problem, f"mend {settings.rules_file}, see docs/rules.md")
    except (OSError, UnicodeDecodeError) as error:
        yield Check("rules.toml", State.PROBLEM, f"cannot be read ({error})", f"mend {settings.rules_file}")
    else:
        yield Check("rules.toml", State.OK, in_force(valid, settings.clock()))


def in_force(valid: Rules, now: datetime) -> str:
    """Say which rule holds for a play of this moment."""
    rule = valid.minimum_at(now)
    if rule is None:
        later = f"; {len(valid.minimum_durations)} begin later" if valid.minimum_durations else ""
        return f"no rule in force, every play counts{later}"
    return (
        f"in force since {clock_time(rule.effective_from)}: plays shorter than {rule.duration_ms:,} ms do not count, "
        f"plays without a duration: {rule.missing.value}; rules in the file: {len(valid.minimum_durations)}"
    )


def lake(settings: Settings) -> Iterator[Check]:
    """Every check of the lake that makes sense for what is there."""
    root = settings.lake_root.absolute()
    if newest_version(root / PLAYS.name) < 0:
        yield Check("lake", State.WARNING, f"nothing was imported into {root} yet", "run `lakeboard import` or `demo`")
        return
    newest = newest_release(root)
    yield from released(newest, settings.clock())
    yield from counted(root, newest)
    if newest is not None:
        yield from ahead(root, newest)
        yield from same_rules(settings, newest)
    yield from reader_versions(root)


def released(newest: Release | None, now: datetime) -> Iterator[Check]:
    """Which release is current, and how old its frontier is."""
    if newest is None:
        yield Check("release", State.WARNING, "nothing was counted yet, so readers see nothing", RECOUNT)
        return
    made = f"release {newest.release} of {clock_time(newest.created_at)} ({newest.cause})"
    yield Check("release", State.OK, made)
    age = now - newest.frontier
    found = f"certified up to {clock_time(newest.frontier)}, {age // timedelta(hours=1):,} hours ago"
    is_old = age > OLD_FRONTIER
    step = f"{RECOUNT}: it certifies the hours since" if is_old else ""
    yield Check("frontier", State.WARNING if is_old else State.OK, found, step)


def counted(root: Path, newest: Release | None) -> Iterator[Check]:
    """Whether bronze has more than was counted, or less."""
    position = bronze_position(root)
    if newest is None:
        yield Check("not counted", State.WARNING, f"{position.events:,} events", RECOUNT)
        return
    try:
        position.advances(newest.position)
    except PositionWentBackError as error:
        found = f"bronze/plays went back: {error.what} was {error.before} and is {error.now}"
        yield Check("not counted", State.PROBLEM, found, f"bring the missing files of bronze/plays back, {LOOK_UP}")
        return
    new = position.events - newest.position.events
    if new:
        yield Check("not counted", State.WARNING, f"{new:,} of {position.events:,} events", RECOUNT)
    else:
        yield Check("not counted", State.OK, f"all {position.events:,} events are counted")


def ahead(root: Path, newest: Release) -> Iterator[Check]:
    """Whether tables stand where the release says: ahead after a run that was killed, behind when commits are gone."""
    versions = {table.name: newest_version(root / table.name) for table in DERIVED}
    later = [name for name, version in versions.items() if version > newest.table_versions[name]]
    lost = [name for name, version in versions.items() if version < newest.table_versions[name]]
    if lost:
        found = f"older than the release says: {', '.join(lost)}"
        yield Check("tables", State.PROBLEM, found, f"bring the missing files back from a copy, {LOOK_UP}")
    if later:
        found = f"ahead of the release: {', '.join(later)} (a recount runs or was stopped; readers see nothing of it)"
        yield Check("tables", State.WARNING, found, f"{RECOUNT}: it brings them back and counts again")
    if not lost and not later:
        yield Check("tables", State.OK, f"all {len(versions)} derived tables stand where the release says")


def same_rules(settings: Settings, newest: Release) -> Iterator[Check]:
    """Whether the release was counted by the rules that the file has now."""
    try:
        differ = settings.rules().fingerprint() != newest.rules.fingerprint()
    except (InvalidRulesError, OSError, UnicodeDecodeError):
        return  # said by `rules`
    if differ:
        yield Check("rules", State.WARNING, f"they changed since release {newest.release}", RECOUNT)


def reader_versions(root: Path) -> Iterator[Check]:
    """Whether every table opens in every engine: Delta's reader version 1."""
    there = [table.name for table in ALL if newest_version(root / table.name) >= 0]
    versions = {name: DeltaTable(root / name).protocol().min_reader_version for name in there}
    other = [f"{name} ({version})" for name, version in versions.items() if version != READER_VERSION]
    if other:
        found = f"not {READER_VERSION}: {', '.join(other)}; some readers cannot open these"
        yield Check("reader version", State.PROBLEM, found, f"bring them back from a copy, {LOOK_UP}")
    else:
        yield Check("reader version", State.OK, f"{READER_VERSION} in all {len(there)} tables: every engine opens them")
