"""`GET /v1/charts/live`: charts as server-sent events."""

from functools import partial

from serving.answers import Head, Headers
from serving.bodies import Receive, Send
from serving.channels import Channels
from serving.chart_questions import Question, question_of
from serving.charts import require_get
from serving.live_charts import LiveCharts
from serving.readers import Readers
from serving.settings import ApiSettings
from serving.viewers import Viewers

_LOOK_SECONDS = 0.1  # what is looked at is in memory, and read anew only after a change


class LiveStreams:
    """The open live charts of one worker."""

    def __init__(self, settings: ApiSettings, *, live: LiveCharts, readers: Readers, viewers: Viewers) -> None:
        self._live = live
        self._readers = readers
        self._viewers = viewers
        self._channels = Channels(settings, viewers=viewers, name="chart", seconds=_LOOK_SECONDS)

    async def serve(self, head: Head, receive: Receive, send: Send, more: Headers) -> None:
        """Serve one viewer until it leaves.

        Raises:
            RefusedError: it is not served; nothing was sent.
        """
        require_get(head)
        self._readers.admit(head)
        question = question_of(head.path, head.query)
        viewer = self._readers.name(head)
        self._viewers.require_room(viewer)
        self._readers.take(head, f"live|{question.kind.value}|{question.region}")
        look = partial(chart_now, self._live, question)
        with self._viewers.seat(viewer):
            await self._channels.show(question, look, head=head, receive=receive, send=send, more=more)


async def chart_now(live: LiveCharts, question: Question) -> tuple[str, bytes]:
    """Look at a chart: its tag without weak mark and quotes, and its rows as they are sent.

    Raises:
        RefusedError: it is not there.
    """
    ready = await live.chart(question.kind, question.region)
    tag, body = ready.answer(question.n)
    return tag.decode().strip('W/"'), body
