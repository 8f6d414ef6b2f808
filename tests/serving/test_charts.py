"""Charts over HTTP: a real server, a real views server, partitions that count for real."""

import asyncio
import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from domain.live_windows import LiveWindow
from domain.windows import Granularity, Window
from serving.answers import Head
from serving.auth import KeyRing
from serving.bodies import Message
from serving.channels import Channel
from serving.chart_questions import Question
from serving.closed_charts import ClosedCharts
from serving.keys import KeyFile, Role
from serving.live import LiveStreams, chart_now
from serving.live_charts import LiveCharts
from serving.readers import Readers
from serving.settings import ApiSettings
from serving.viewers import Viewers
from speed_layer.store.charts import ChartReading, ChartsReader
from speed_layer.store.connection import octets
from speed_layer.store.keys import CHARTS_STATUS
from speed_layer.store.ready import decode_charts_status, encode_charts_status
from tests.lakes import ModelLake, Play, at
from tests.serving.api_server import api, until
from tests.serving.live_api import Serving, counted_lake, live_api
from tests.serving.streams import Stream
from tests.speed_layer.published import merging

pytestmark = pytest.mark.redis

SPECIAL = {"heartbeat_seconds": 0.5, "viewers": 3}


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with live_api(tmp_path_factory.mktemp("live"), **SPECIAL) as found:
        yield found


def test_before_a_chart_is_made_reading_waits_and_accepting_does_not(serving: Serving) -> None:
    answer = serving.get("/v1/charts/top?region=IN")
    ready = serving.get("/readyz")
    with serving.api.client(serving.key) as client:
        until(lambda: client.post("/v1/events", json={"item_id": "a", "event_id": "1"}).status_code == 202, "accepted")

    assert (answer.status_code, answer.json()["code"]) == (503, "charts_not_ready")
    assert answer.headers["retry-after"] == "1"
    assert (ready.status_code, ready.json()["ready"], ready.json()["parts"]["charts"]["ok"]) == (200, True, False)
    assert ready.json()["parts"]["charts"]["problem"]


def test_what_was_played_is_in_the_chart_within_a_second_or_two(serving: Serving) -> None:
    serving.play("a", "a", "b", "ärger", region="IN")
    serving.play("c", region="DE")

    until(lambda: len(serving.counts("/v1/top?k=10&window=1h")) == 4, "the chart", 2)
    body = serving.get("/v1/charts/top?window=1h&region=in&n=2").json()
    assert [(row["rank"], row["item_id"], row["count"]) for row in body["entries"]] == [(1, "a", 2), (2, "b", 1)]
    assert (body["region"], body["total"], body["missed_max"], body["tie_at_cut"]) == ("IN", 4, 1, True)
    assert (body["status"], body["exact"], body["frontier"], "partial" in body) == ("provisional", True, None, False)
    assert body["window_start"] == "2026-11-14T08:58:00Z"
    assert body["window_end"] == "2026-11-14T09:59:00Z"
    assert {row["upper"] - row["lower"] for row in body["entries"]} == {0}
    until(lambda: serving.get("/readyz").json()["parts"]["charts"]["ok"], "readiness says so", 3)
    nobody = serving.get("/v1/charts/top?region=FR").json()
    assert (nobody["entries"], nobody["total"], nobody["exact"]) == ([], 0, True)


def test_a_closed_window_is_exact_and_an_older_release_stays_readable(serving: Serving) -> None:
    path = "/v1/charts/top?window=1h&region=IN&start=2026-11-14T01:00Z"
    now = serving.get(path)
    then = serving.get(f"{path}&version=1")
    same = serving.get(f"{path}&version=1", If_None_Match=then.headers["etag"])
    day = serving.get("/v1/charts/top?window=1d&start=2026-11-15&n=1").json()

    rows = [(row["item_id"], row["count"], row["rank_max"]) for row in now.json()["entries"]]
    assert rows == [("a/b", 3, 1), ("ärger", 3, 2)]
    assert (now.json()["status"], now.json()["exact"], now.json()["release"]) == ("final", True, 2)
    assert now.headers["cache-control"] == "public, max-age=5"
    assert [row["count"] for row in then.json()["entries"]] == [3, 2]
    assert (then.headers["cache-control"], same.status_code) == ("public, max-age=3600", 304)
    assert (day["status"], day["exact"], [row["item_id"] for row in day["entries"]]) == ("provisional", False, ["c"])


def test_a_release_that_never_was_is_404(serving: Serving) -> None:
    answer = serving.get("/v1/charts/top?start=2026-11-14T01:00Z&version=9")

    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (404, "release_unknown", "version")


def test_an_item_is_counted_over_whole_hours_whatever_its_id(serving: Serving) -> None:
    span = "from=2026-11-14T00:00Z&to=2026-11-15T00:00Z"
    found = [
        serving.get(f"/v1/items/{item}/count?{span}&region=in").json() for item in ("a%2Fb", "%C3%A4rger", "nobody")
    ]

    assert [(one["item_id"], one["counted"], one["status"]) for one in found] == [
        ("a/b", 3, "final"),
        ("ärger", 3, "final"),
        ("nobody", 0, "final"),
    ]


def test_closed_windows_need_no_views_server_and_live_ones_no_lake(tmp_path: Path, serving: Serving) -> None:
    lake = {"lake_root": str(counted_lake(tmp_path / "lake"))}
    serving.play("a", "a", "b", region="NO")
    with api(tmp_path / "one", serving.log.address, special=lake) as no_views, no_views.client() as client:
        closed = client.get("/v1/charts/top?window=1h&region=IN&start=2026-11-14T01:00Z")
        no_live = client.get("/v1/charts/top")
    with (
        api(tmp_path / "other", serving.log.address, views_url=serving.server.address) as no_lake,
        no_lake.client() as client,
    ):
        live = client.get("/v1/charts/top?region=NO")
        no_closed = client.get("/v1/charts/top?start=2026-11-14T01:00Z")

    assert [(row["item_id"], row["count"]) for row in closed.json()["entries"]] == [("a/b", 3), ("ärger", 3)]
    assert (no_live.status_code, no_live.json()["code"]) == (503, "charts_not_ready")
    assert [(row["item_id"], row["count"]) for row in live.json()["entries"]] == [("a", 2), ("b", 1)]
    assert (no_closed.status_code, no_closed.json()["code"]) == (404, "nothing_counted")


def test_live_and_closed_charts_are_read_while_the_log_server_is_away(tmp_path: Path) -> None:
    with live_api(tmp_path) as own:
        own.play("a", "a", "b", region="NO")
        until(lambda: own.counts("/v1/charts/top?region=NO&window=1h") == [("a", 2), ("b", 1)], "the chart")
        own.log.kill()
        until(lambda: own.get("/readyz").status_code == 503, "the log is known to be away")
        own.play("b", "b", region="NO")
        until(lambda: own.counts("/v1/charts/top?region=NO&window=1h") == [("b", 3), ("a", 2)], "the chart moves")
        closed = own.get("/v1/charts/top?window=1h&region=IN&start=2026-11-14T01:00Z")

    assert [(row["item_id"], row["count"]) for row in closed.json()["entries"]] == [("a/b", 3), ("ärger", 3)]


def test_a_closed_window_follows_a_new_release(tmp_path: Path) -> None:
    """Answers are remembered by release: with the next one they are read again."""
    charts = ClosedCharts(counted_lake(tmp_path / "lake"))
    question = Question(LiveWindow.HOUR, "IN", 10, Window.starting(at(1), Granularity.HOUR))
    paid: list[str] = []

    async def ask() -> tuple[Any, Any, Any]:
        first = json.loads(await charts.chart(question, pay=lambda: paid.append("first")))
        again = await charts.chart(question, pay=lambda: paid.append("again"))
        model = ModelLake()
        model.release([Play("only", "z", at(1), "IN")], frontier=at(2))
        for number in (2, 3, 4):
            model.release([Play(f"x{number}", "z", at(1), "IN")], frontier=at(2, day=15))
        shutil.rmtree(tmp_path / "lake")
        model.write(tmp_path / "lake")
        await asyncio.sleep(2.1)  # for so long a release is taken to be the newest
        later = await charts.chart(question, pay=lambda: paid.append("later"))
        return first, json.loads(again), json.loads(later)

    first, again, later = asyncio.run(ask())
    charts.close()
    assert first == again
    assert [row["item_id"] for row in later["entries"]] == ["z"]
    assert paid == ["first", "later"]


REFUSED = {
    "/v1/top?k=0": "k_out_of_range",
    "/v1/top?k=101": "k_out_of_range",
    "/v1/top?k=ten": "k_out_of_range",
    "/v1/top?k=" + "9" * 30: "k_out_of_range",
    "/v1/charts/top?n=101": "k_out_of_range",
    "/v1/top?region=IN": "unknown_parameter",
    "/v1/charts/top?windwo=1h": "unknown_parameter",
    "/v1/charts/top?window=2h": "parameter_invalid",
    "/v1/charts/top?window=1h&window=1d": "parameter_invalid",
    "/v1/charts/top?region=a%20b": "parameter_invalid",
    "/v1/charts/top?region=%FF": "parameter_invalid",
    "/v1/charts/top?version=3": "parameter_invalid",
    "/v1/charts/top?window=1m&start=2026-11-14T08:00Z": "parameter_invalid",
    "/v1/charts/top?start=yesterday": "parameter_invalid",
    "/v1/charts/top?window=1h&start=2026-11-14T08:30Z": "start_unaligned",
    "/v1/charts/top?window=1d&start=2026-11-14T08:00Z": "start_unaligned",
    "/v1/charts/live?n=0": "k_out_of_range",
    "/v1/items/a/count?from=2026-11-14T08:30Z&to=2026-11-14T09:00Z": "parameter_invalid",
    "/v1/items/a/count?from=2026-11-14T08:00Z": "parameter_invalid",
    "/v1/items/a/count?from=0001-01-02T00:00Z&to=9999-12-30T00:00Z": "parameter_invalid",
}


@pytest.mark.parametrize("path", REFUSED)
def test_what_may_not_be_asked_is_refused_with_its_code(serving: Serving, path: str) -> None:
    answer = serving.get(path)

    assert (answer.status_code, answer.json()["code"]) == (400, REFUSED[path])
    assert answer.headers["content-type"] == "application/problem+json"


def test_an_item_is_counted_over_ten_years_and_no_more(serving: Serving) -> None:
    most = serving.get("/v1/items/a%2Fb/count?from=2016-12-01T00:00Z&to=2026-12-09T00:00Z")  # 3,660 days
    more = serving.get("/v1/items/a%2Fb/count?from=2016-12-01T00:00Z&to=2026-12-09T01:00Z")

    assert (most.status_code, most.json()["counted"]) == (200, 3)
    assert (more.status_code, more.json()["code"], more.json()["field"]) == (400, "parameter_invalid", "to")


def test_other_methods_are_refused_with_allow(serving: Serving) -> None:
    with serving.api.client(serving.key) as client:
        answers = [client.post(path) for path in ("/v1/top", "/v1/charts/top", "/v1/charts/live", "/v1/items/a/count")]

    assert [(answer.status_code, answer.headers["allow"]) for answer in answers] == [(405, "GET")] * 4


def as_of(answer: httpx.Response) -> datetime:
    """Return the moment: texts of moments are not in order, as whole seconds have no dot."""
    return datetime.fromisoformat(answer.json()["as_of"])


def test_an_unchanged_chart_is_304_and_a_changed_one_is_not(serving: Serving) -> None:
    serving.play("a", region="BR")
    until(lambda: serving.counts("/v1/charts/top?region=BR") == [("a", 1)], "the chart")
    first = serving.get("/v1/charts/top?region=BR")
    same = serving.get("/v1/charts/top?region=BR", If_None_Match=f'"other", {first.headers["etag"]}')
    serving.play("x", region="DE")  # another chart, and the log's time goes on
    until(lambda: as_of(serving.get("/v1/charts/top?region=BR")) > as_of(first), "a later moment")
    still = serving.get("/v1/charts/top?region=BR", If_None_Match=first.headers["etag"])
    serving.play("b", region="BR")
    until(lambda: len(serving.counts("/v1/charts/top?region=BR")) == 2, "the change")
    changed = serving.get("/v1/charts/top?region=BR", If_None_Match=first.headers["etag"])

    assert as_of(first) < as_of(changed)
    assert first.headers["cache-control"] == "public, max-age=1"
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", first.headers["etag"])
    assert (still.status_code, changed.status_code) == (304, 200)
    assert changed.headers["etag"] != first.headers["etag"]


def test_an_address_that_polls_faster_than_the_chart_changes_is_limited_and_304_is_free(serving: Serving) -> None:
    serving.play("a", region="NL")
    with httpx.Client(base_url=serving.api.url, transport=httpx.HTTPTransport(local_address="127.0.0.7")) as client:
        answers = [client.get("/v1/charts/top?region=NL&n=3") for _ in range(8)]
        tag = answers[0].headers["etag"]
        free = [client.get("/v1/charts/top?region=NL&n=3", headers={"If-None-Match": tag}) for _ in range(20)]
        other = client.get("/v1/charts/top?region=IN")

    statuses = [answer.status_code for answer in answers]
    assert statuses[:5] == [200] * 5
    assert statuses[-1] == 429
    limited = answers[-1]
    assert (limited.json()["code"], limited.headers["retry-after"]) == ("rate_limited", "1")
    assert limited.headers["ratelimit-policy"] == '"reads";q=5;w=1'
    assert {answer.status_code for answer in free} == {304}
    assert other.status_code == 200
    assert all(serving.get("/v1/charts/top?region=NL").status_code == 200 for _ in range(20))  # a key with its own


def at_once(serving: Serving, address: str, paths: Sequence[str], **headers: str) -> list[httpx.Response]:
    """Ask from an address of its own, without a key, by all connections together."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    transport = httpx.HTTPTransport(local_address=address)
    with (
        httpx.Client(base_url=serving.api.url, transport=transport, timeout=20) as client,
        ThreadPoolExecutor(20) as threads,
    ):
        return list(threads.map(lambda path: client.get(path, headers=named), paths))


def test_a_reader_has_the_lake_read_only_so_often_whatever_it_asks_for(serving: Serving) -> None:
    """Each item is another question, and every body is one that `*` names: neither gets around the limit."""
    span = "count?from=2026-11-14T00:00Z&to=2026-11-15T00:00Z"
    answers = at_once(serving, "127.0.0.11", [f"/v1/items/new{n}/{span}" for n in range(40)])
    named = at_once(serving, "127.0.0.12", [f"/v1/items/named{n}/{span}" for n in range(40)], If_None_Match="*")
    known = next(answer for answer in answers if answer.status_code == 200)
    same = [known.url.raw_path.decode()] * 40
    free = at_once(serving, "127.0.0.11", same, If_None_Match=known.headers["etag"])

    for found, good in ((answers, 200), (named, 304)):
        statuses = Counter(answer.status_code for answer in found)
        assert set(statuses) == {good, 429}
        assert 5 <= statuses[good] < 20
    limited = next(answer for answer in answers if answer.status_code == 429)
    assert limited.json()["detail"].startswith("one key or address may have the lake read 5 times a second")
    assert {answer.status_code for answer in free} == {304}


def test_bodies_of_a_live_chart_are_made_within_the_limit_too(serving: Serving) -> None:
    serving.play("a", region="PT")
    answers = at_once(
        serving, "127.0.0.13", [f"/v1/charts/top?region=PT&n={n}" for n in range(1, 41)], If_None_Match="*"
    )

    statuses = Counter(answer.status_code for answer in answers)
    assert set(statuses) == {304, 429}
    assert 5 <= statuses[304] < 20


def test_a_chart_keeps_few_bodies(serving: Serving) -> None:
    async def kept() -> int:
        live = LiveCharts(serving.server.address)
        ready = await live.chart(LiveWindow.HOUR, "*")
        for n in range(1, 101):
            ready.answer(n)
        await live.close()
        return sum(ready.has(n) for n in range(1, 101))

    serving.play("a", region="PT")
    assert 1 <= asyncio.run(kept()) <= 8


def test_a_region_of_a_partition_that_was_never_read_says_what_is_missing(serving: Serving) -> None:
    """A third partition is in the log that the merger knows of, and nobody counts it."""
    serving.views.client.delete("lb:{charts}:lease")
    three = merging(serving.server, serving.views, partitions=3)
    three.cycle()
    try:
        until(lambda: "partial" in serving.get("/v1/top").json(), "it is partial")
        body = serving.get("/v1/top").json()
        assert body["partial"] == [{"partition": 2, "reason": "missing"}]
        assert body["exact"] is False
    finally:
        serving.views.client.delete("lb:{charts}:lease")
        serving.merging = merging(serving.server, serving.views)
        serving.merging.cycle()
    until(lambda: "partial" not in serving.get("/v1/top").json(), "it is whole again")


# --- server-sent events ---


def test_a_viewer_gets_the_chart_each_change_and_signs_of_life(serving: Serving) -> None:
    serving.play("a", region="SE")
    until(lambda: serving.counts("/v1/charts/top?region=SE") == [("a", 1)], "the chart")
    with Stream(serving.api, serving.key, "/v1/charts/live?region=SE&n=1") as stream:
        until(lambda: len(stream.events) == 1, "the present chart")
        until(lambda: stream.comments > 0, "a sign of life")
        assert len(stream.events) == 1
        serving.play("b", "b", region="SE")
        until(lambda: len(stream.events) == 2, "the change", 2)
        assert [(row["item_id"], row["count"]) for row in stream.data()["entries"]] == [("b", 2)]
        assert stream.events[0]["event"] == "chart"
        seen = stream.events[-1]["id"]
    with Stream(serving.api, serving.key, "/v1/charts/live?region=SE&n=1", Last_Event_ID=seen) as again:
        until(lambda: again.comments > 0, "it is open")
        assert again.events == []
        serving.play("b", region="SE")
        until(lambda: len(again.events) == 1, "only what is new")


def test_metrics_and_the_page_are_served(serving: Serving) -> None:
    text = serving.get("/metrics").text
    page = serving.get("/charts")

    assert "lakeboard_charts_frontier_timestamp_seconds" not in text
    assert 'lakeboard_charts_partial_partitions{window="1h"} 0.0' in text
    assert 'lakeboard_charts_as_of_timestamp_seconds{window="1d"} 1.7946' in text
    assert "lakeboard_charts_silent_seconds " in text
    assert 'lakeboard_http_requests_total{route="/v1/charts/top",status="304"}' in text
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "connect-src 'self'" in page.headers["content-security-policy"]

    status = decode_charts_status(octets(serving.views.client.get(CHARTS_STATUS)))
    day = replace(status.moments[LiveWindow.DAY], frontier=at(8))
    joined = replace(status, moments={**status.moments, LiveWindow.DAY: day})
    serving.views.client.set(CHARTS_STATUS, encode_charts_status(joined))

    def frontiers() -> list[float]:
        lines = [line.split() for line in serving.get("/metrics").text.splitlines()]
        return [float(line[1]) for line in lines if line[0] == "lakeboard_charts_frontier_timestamp_seconds"]

    until(lambda: frontiers() == [at(8).timestamp()], "the frontier of the day", 5)
    serving.merging.cycle()


def some_chart(serving: Serving) -> None:
    serving.play("v", region="VW")
    until(lambda: serving.get("/v1/charts/top?region=VW").status_code == 200, "a chart")


def test_viewers_are_bounded_and_make_room_when_they_leave(serving: Serving) -> None:
    some_chart(serving)
    streams = [Stream(serving.api, serving.key, "/v1/charts/live?region=VW") for _ in range(3)]
    for stream in streams:
        stream.__enter__()
    until(lambda: all(stream.events for stream in streams), "three viewers")
    refused = serving.get("/v1/charts/live?region=VW")
    for stream in streams:
        stream.__exit__()

    assert (refused.status_code, refused.json()["code"]) == (503, "too_many_viewers")
    assert "retry-after" in refused.headers

    def opens() -> bool:
        with Stream(serving.api, serving.key, "/v1/charts/live?region=VW") as one:
            until(lambda: bool(one.status), "an answer")
            return one.status == 200

    until(opens, "there is room again")


def test_one_key_or_address_cannot_take_all_the_room_for_viewers(serving: Serving, tmp_path: Path) -> None:
    some_chart(serving)
    special = {"heartbeat_seconds": 0.2, "viewers_each": 2}
    key, other = (KeyFile(tmp_path).add(name, (Role.READER,))[1] for name in ("one", "other"))
    with (
        api(tmp_path, serving.log.address, special=special, views_url=serving.server.address) as found,
        ExitStack() as streams,
    ):

        def open_one(by: str) -> Stream:
            stream = streams.enter_context(Stream(found, by, "/v1/charts/live"))
            until(lambda: bool(stream.status), "an answer")
            return stream

        first, second = open_one(key), open_one(key)
        with found.client(key) as client, client.stream("GET", "/v1/charts/live") as refused:
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
            problem = json.loads(refused.read())
        others = [open_one(other), open_one("no-key")]
        assert [stream.status for stream in (first, second, *others)] == [200] * 4
        first.__exit__()
        until(lambda: open_one(key).status == 200, "there is room again")
        assert found.stop() == 0

    assert problem["code"] == "too_many_viewers"
    assert problem["detail"].startswith("one key or address may have 2 live charts and boards open")


def test_all_viewers_of_a_chart_share_one_read_after_each_change(serving: Serving) -> None:
    """Three viewers, five changes: five reads of the chart, and none while nothing changes."""

    def reads() -> int:
        counted: dict[str, dict[str, int]] = serving.views.client.info("commandstats")
        return counted["cmdstat_hget"]["calls"] if "cmdstat_hget" in counted else 0

    serving.play("shared", region="IN")  # the first one reads more
    before = reads()
    serving.play("shared", region="IN")
    of_a_play = reads() - before  # the partition and the merger read too
    with ExitStack() as open_:
        streams = [open_.enter_context(Stream(serving.api, serving.key, "/v1/charts/live?region=IN")) for _ in range(3)]
        until(lambda: all(stream.events for stream in streams), "three viewers")
        heard, before = [len(stream.events) for stream in streams], reads()
        for change in range(1, 6):
            serving.play("shared", region="IN")
            seen = change
            until(lambda: all(len(s.events) == n + seen for s, n in zip(streams, heard, strict=True)), "the change")  # noqa: B023  called at once
        after = reads()
        until(lambda: all(stream.comments > 0 for stream in streams), "a sign of life without news")
        quiet = reads()

    assert 5 <= after - before - 5 * of_a_play <= 6
    assert quiet == after


def test_a_viewer_that_takes_nothing_is_dropped_in_time(serving: Serving, tmp_path: Path) -> None:
    """The server hands over no more than the connection takes (4.6 MB were seen), and then waits: not for ever."""
    settings = ApiSettings(home=tmp_path, run=tmp_path, log_url="", viewer_seconds=0.2)
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    async def receive() -> Message:
        return await asyncio.Future()

    async def watch() -> None:
        live, readers = LiveCharts(serving.server.address), Readers(settings, ring=KeyRing(tmp_path))
        viewers = Viewers(settings)
        streams = LiveStreams(settings, live=live, readers=readers, viewers=viewers)
        head = Head("GET", "/v1/charts/live", b"region=IN", {}, b"id", "127.0.0.1")
        await asyncio.wait_for(streams.serve(head, receive, send, ()), 5)
        assert viewers.open_now == 0
        await live.close()
        readers.close()

    asyncio.run(watch())
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]


def test_an_error_that_nobody_thought_of_is_logged_and_the_looking_goes_on(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0
    read, read_status = ChartsReader.read, ChartsReader.read_status

    def fail_at_one() -> None:
        nonlocal reads
        reads += 1
        if reads == failing:
            raise ZeroDivisionError

    async def read_or_fail(self: ChartsReader, kind: LiveWindow, region: str) -> ChartReading:
        fail_at_one()
        return await read(self, kind, region)

    async def read_status_or_fail(self: ChartsReader) -> ChartReading:
        fail_at_one()
        return await read_status(self)

    async def channel() -> None:
        live = LiveCharts(serving.server.address)
        look = partial(chart_now, live, Question(LiveWindow.HOUR, "CH", 10))
        found = Channel("chart", look, seconds=0.1)
        await found.open()
        before = found.tag
        serving.play("a", region="CH")
        await asyncio.wait_for(found.other_than(before), 10)
        found.close()
        await live.close()

    async def watch() -> None:
        live = LiveCharts(serving.server.address)
        watching = asyncio.create_task(live.watch())
        async with asyncio.timeout(10):
            while live.problem is not None:
                await asyncio.sleep(0.05)
        watching.cancel()
        await live.close()

    monkeypatch.setattr(ChartsReader, "read", read_or_fail)
    monkeypatch.setattr(ChartsReader, "read_status", read_status_or_fail)
    serving.play("b", region="CH")
    for work, failing, event in ((channel, 2, "live_chart_look_failed"), (watch, 1, "charts_look_failed")):  # noqa: B007  read above
        reads = 0
        with capture_logs() as lines:
            asyncio.run(work())
        assert [line["event"] for line in lines if line["log_level"] == "error"] == [event]


def test_open_streams_end_when_the_server_is_told_to_stop(serving: Serving) -> None:
    with Stream(serving.api, serving.key, "/v1/charts/live?region=IN") as stream:
        until(lambda: bool(stream.events), "a viewer")
        started = time.monotonic()
        assert serving.api.stop() == 0
        took = time.monotonic() - started
        until(lambda: stream.ended, "the stream ends")
        assert not stream.broken
    serving.api.start()

    assert took < 10
    assert serving.get("/v1/top").status_code == 200


# --- when the views server is away ---


def test_while_the_views_server_is_away_charts_are_503_and_accepting_goes_on(serving: Serving) -> None:
    code: Callable[[], str] = lambda: serving.get("/v1/top").json().get("code", "")  # noqa: E731  said three times
    serving.server.kill()
    try:
        until(lambda: code() == "charts_unavailable", "charts are unavailable", 10)
        with serving.api.client(serving.key) as client:
            accepted = client.post("/v1/events", json={"item_id": "a", "event_id": "away"})
        ready = serving.get("/readyz")
    finally:
        serving.server.start()
    until(lambda: code() == "charts_not_ready", "the server is back, empty")

    assert accepted.status_code == 202
    assert (ready.status_code, ready.json()["parts"]["charts"]["ok"]) == (200, False)
