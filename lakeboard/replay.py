"""The clock of a replay stack as text: what a person says, and what the parts of the stack are told."""

from datetime import UTC, datetime

from domain.clock import Clock
from ingest.log_clock import ReplayClock


def replay_from(said: str, now: Clock) -> ReplayClock:
    """Read `START,SPEED` of a person: a moment with its zone (a bare date is midnight UTC), and how fast it runs.

    Raises:
        ValueError: it is something else.
    """
    start, _, speed = said.partition(",")
    clock = ReplayClock(start=_moment(start), began=now(), speed=float(speed or 1))
    return _checked(clock)


def replay_text(clock: ReplayClock) -> str:
    """Return a replay's clock as `START,BEGAN,SPEED`, which all of its parts are given."""
    return f"{clock.start.isoformat()},{clock.began.isoformat()},{clock.speed!r}"


def replay_clock(text: str) -> ReplayClock:
    """Read what `replay_text` wrote.

    Raises:
        ValueError: it is something else.
    """
    start, began, speed = text.split(",")
    return _checked(ReplayClock(start=_moment(start), began=_moment(began), speed=float(speed)))


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text.strip())
    if len(text.strip()) <= len("2026-11-14"):
        return moment.replace(tzinfo=UTC)
    if moment.tzinfo is None:
        message = f"{text!r} has no time zone"
        raise ValueError(message)
    return moment.astimezone(UTC)


def _checked(clock: ReplayClock) -> ReplayClock:
    """Refuse a clock that stands still, goes back or leaves the calendar within the first day."""
    if not 0 < clock.speed <= 1e6:  # noqa: PLR2004  a million seconds a second is a replay of years in minutes
        message = f"a speed above 0 and up to 1000000 is wanted, not {clock.speed:g}"
        raise ValueError(message)
    return clock
