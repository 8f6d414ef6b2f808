"""What both peers take, as FastAPI's own documentation would have it."""

from datetime import datetime

from pydantic import BaseModel, TypeAdapter


class PlayIn(BaseModel):
    """One play."""

    event_id: str
    item_id: str
    region: str = "ZZ"
    user_id: str | None = None
    event_time: datetime | None = None
    duration_ms: int | None = None
    count: int = 1


PLAYS_IN = TypeAdapter(list[PlayIn])


def listed(body: PlayIn | list[PlayIn]) -> list[PlayIn]:
    """Return the plays of a body."""
    return body if isinstance(body, list) else [body]
