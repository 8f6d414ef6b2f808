"""`GET .../boards/{board}/live`: the best of a board as server-sent events."""

from collections.abc import Mapping
from functools import partial
from hashlib import blake2b

import msgspec

from domain.boards.definitions import Game
from serving.answers import Head, Headers
from serving.boards.addresses import BoardAddress
from serving.boards.questions import DEFAULT_TOP, nothing_asked
from serving.boards.reads import BoardReads
from serving.bodies import Receive, Send
from serving.channels import Channels
from serving.readers import Readers
from serving.settings import ApiSettings
from serving.viewers import Viewers

_LOOK_SECONDS = 0.25
_MOVES_WITHOUT_NEWS = ("as_of", "of")  # with every score of anybody
_TAG_BYTES = 12


class LiveBoards:
    """The open live boards of one worker."""

    def __init__(self, settings: ApiSettings, *, reads: BoardReads, readers: Readers, viewers: Viewers) -> None:
        self._reads = reads
        self._readers = readers
        self._viewers = viewers
        self._channels = Channels(settings, viewers=viewers, name="board", seconds=_LOOK_SECONDS)

    async def serve(self, head: Head, receive: Receive, send: Send, more: Headers, address: BoardAddress) -> None:
        """Serve one viewer until it leaves; a board such as `daily` turns to the next day by itself.

        Raises:
            RefusedError: it is not served; nothing was sent.
        """
        self._readers.admit(head)
        nothing_asked(head.query)
        game = self._reads.game(address.game)
        viewer = self._readers.name(head)
        self._viewers.require_room(viewer)
        self._readers.take(head, f"live|{game.name}|{address.board}")
        look = partial(best_now, self._reads, game, address.board)
        with self._viewers.seat(viewer):
            watched = (game.name, address.board)
            await self._channels.show(watched, look, head=head, receive=receive, send=send, more=more)


async def best_now(reads: BoardReads, game: Game, board: str) -> tuple[str, bytes]:
    """Look at the best of a board: a tag that moves with them, and their rows as they are sent.

    Raises:
        RefusedError: they are not there.
    """
    body, encoded = await reads.best(game, board, DEFAULT_TOP)
    return _tag(body), encoded


def _tag(body: Mapping[str, object]) -> str:
    shown = {name: said for name, said in body.items() if name not in _MOVES_WITHOUT_NEWS}
    return blake2b(msgspec.json.encode(shown), digest_size=_TAG_BYTES).hexdigest()
