"""Kinds of event that are appended to the log: which stream, which partition, which bytes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, Generic, NamedTuple, TypeVar

from domain.boards.events import BoardEvent
from domain.log import EntryId, Stream
from ingest.log_entry import Play, encode_plays
from ingest.score_entry import encode_scores

Event = TypeVar("Event")


@dataclass(frozen=True)
class EventKind(Generic[Event]):
    """Events of one stream.

    Attributes:
        stream: Of which stream.
        key_of: What of an event says its partition.
        encode: Makes an entry of events and the runs of their sources.
    """

    stream: Stream
    key_of: Callable[[Event], str]
    encode: Callable[[Sequence[Event], Sequence[tuple[str, int]]], bytes]


PLAYS_KIND: Final[EventKind[Play]] = EventKind(Stream.PLAYS, attrgetter("item_id"), encode_plays)
SCORES_KIND: Final[EventKind[BoardEvent]] = EventKind(Stream.SCORES, attrgetter("player_id"), encode_scores)


class Appended(NamedTuple):
    """Where the events of one append are that went to one partition: one after the other in one entry.

    Attributes:
        partition: Its number.
        entry: The entry.
        first: Place of the first of them in the entry.
        events: How many.
    """

    partition: int
    entry: EntryId
    first: int
    events: int
