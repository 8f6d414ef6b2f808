"""`GET /v1/race/live`: the race as server-sent events; each is run once for all who watch it."""

import asyncio
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from domain.race import DEFAULT_SEED, DEFAULT_WIDTH, FRAME_SECONDS, PLAYS, SONGS, NoRaceError, Race
from serving.answers import Head, Headers
from serving.bodies import Receive, Send
from serving.chart_questions import parameters
from serving.charts import require_get
from serving.problems import Code, RefusedError
from serving.readers import Readers
from serving.settings import ApiSettings
from serving.viewers import RETRY, STREAM_HEADERS, Leaving, Viewers, event, handed_over

_REMEMBERED = 32  # races of a worker, some 70 kB each
_LONGEST_NUMBER = 10  # digits


class RaceStreams:
    """The open races of one worker."""

    def __init__(self, settings: ApiSettings, *, readers: Readers, viewers: Viewers) -> None:
        self._settings = settings
        self._readers = readers
        self._viewers = viewers

    async def serve(self, head: Head, receive: Receive, send: Send, more: Headers) -> None:
        """Show one race to its end, or until the viewer leaves.

        Raises:
            RefusedError: it is not served; nothing was sent.
        """
        require_get(head)
        self._readers.admit(head)
        race = race_of(head.query)
        viewer = self._readers.name(head)
        self._viewers.require_room(viewer)
        self._readers.take(head, "race")  # one bucket for all of them: each seed is a race to be run
        with self._viewers.seat(viewer):
            frames = await asyncio.to_thread(_events, race)
            await send({"type": "http.response.start", "status": 200, "headers": [*STREAM_HEADERS, *more]})
            async with self._viewers.leaving(receive) as leaving:
                await self._show(frames, send, leaving)

    async def _show(self, frames: Sequence[bytes], send: Send, leaving: Leaving) -> None:
        for frame in (RETRY, *frames):
            if not await handed_over(send, frame, seconds=self._settings.viewer_seconds):
                return
            if (await asyncio.wait(leaving, timeout=FRAME_SECONDS, return_when=asyncio.FIRST_COMPLETED))[0]:
                break
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def race_of(query: bytes) -> Race:
    """Read the query of a race.

    Raises:
        RefusedError: `unknown_parameter`, `parameter_invalid`.
    """
    said = parameters(query, allowed=("width", "seed"))
    width, seed = (_number(said, name, default) for name, default in (("width", DEFAULT_WIDTH), ("seed", DEFAULT_SEED)))
    try:
        return Race(width, seed)
    except NoRaceError as error:
        raise RefusedError(Code.PARAMETER_INVALID, f"{error.option} {error.problem}", field=error.option) from error


def _number(said: dict[str, str], name: str, default: int) -> int:
    text = said.get(name, str(default))
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER:
        return int(text)
    raise RefusedError(Code.PARAMETER_INVALID, f"{name} is a whole number", field=name)


@lru_cache(maxsize=_REMEMBERED)
def _events(race: Race) -> Sequence[bytes]:
    whole = {"plays": PLAYS, "songs": SONGS, "width": race.width, "seed": race.seed}
    frames = [
        event("frame", str(number), msgspec.json.encode(whole | frame.body()))
        for number, frame in enumerate(race.frames(), start=1)
    ]
    return [*frames, event("end", "end", b"{}")]
