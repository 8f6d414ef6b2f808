"""All routes of boards as one, for one worker: what they share is opened and closed here."""

import asyncio
from collections.abc import Sequence

from ingest.log_appender import LogAppender
from ingest.log_kinds import SCORES_KIND
from serving.answers import Answer, Head, Headers
from serving.auth import KeyRing
from serving.boards.addresses import DECISIONS, LIVE, METHODS, WRITES, BoardAddress, board_address
from serving.boards.admin import BoardAdmin
from serving.boards.archived import BoardsOfLake
from serving.boards.live import LiveBoards
from serving.boards.reads import BoardReads
from serving.boards.scores import ScoresEndpoint
from serving.boards.view import BoardViews
from serving.bodies import Receive, Send
from serving.problems import Code, RefusedError
from serving.readers import Readers
from serving.settings import ApiSettings
from serving.viewers import Viewers
from speed_layer.store.boards.reader import BoardsReader


class BoardsEndpoint:
    """The routes. `start` before use, `stop` after.

    Args:
        settings: Of the API.
        ring: Keys.
        readers: Who may read, and how often.
        viewers: Who has streams open.
    """

    def __init__(self, settings: ApiSettings, *, ring: KeyRing, readers: Readers, viewers: Viewers) -> None:
        self._is_there = bool(settings.views_url)
        boards = settings.boards
        self._reader = BoardsReader(settings.views_url or "redis://127.0.0.1:1")  # of no use: refused before
        views = BoardViews(self._reader, shards=settings.board_shards)
        self._appender = LogAppender(
            SCORES_KIND,
            settings.log_url,
            clock=settings.entry_clock,
            folder=settings.log_folder,
            min_free_bytes=settings.min_free_bytes,
        )
        self._scores = ScoresEndpoint(settings, boards=boards, appender=self._appender, ring=ring, views=views)
        self._admin = BoardAdmin(settings, ring=ring, scores=self._scores)
        self._lake = BoardsOfLake(settings.lake_root, boards)
        self._reads = BoardReads(settings, boards=boards, views=views, lake=self._lake, readers=readers)
        self._live = LiveBoards(settings, reads=self._reads, readers=readers, viewers=viewers)

    async def start(self) -> Sequence[asyncio.Task[None]]:
        """Begin; return what has to be cancelled at the end."""
        await self._appender.start(must_answer=False)
        return [asyncio.create_task(part.watch()) for part in (self._scores, self._admin, self._reads)]

    async def stop(self) -> None:
        """Append what waits, then close."""
        await self._appender.stop()
        await self._scores.close()
        await self._reader.close()
        self._lake.close()

    async def answer(self, head: Head, receive: Receive, send: Send, more: Headers) -> Answer | None:
        """Take a request and return its answer; None once a stream, that is sent with some more headers, has ended.

        Raises:
            RefusedError: it is not served.
            LogFullError, LogUnavailableError, LogReplacedError: the log does not take it.
            ClientLeftError: there is nobody to answer.
        """
        address = _address(head.path)
        allowed = METHODS[address.route]
        if head.method not in allowed:
            raise RefusedError(Code.METHOD_NOT_ALLOWED, f"this address takes {' and '.join(allowed)}")
        if not self._is_there:
            raise RefusedError(Code.BOARDS_UNAVAILABLE, "this API has no views server: views_url says where one is")
        if address.route in WRITES:
            return await self._scores.answer(head, receive, address)
        if address.route in DECISIONS:
            return await self._admin.answer(head, receive, address)
        if address.route in LIVE:
            await self._live.serve(head, receive, send, more, address)
            return None
        return await self._reads.answer(head, receive, address)


def _address(path: str) -> BoardAddress:
    found = board_address(path)
    if found is None:
        raise RefusedError(Code.NOT_FOUND, "see /docs for what there is")
    return found
