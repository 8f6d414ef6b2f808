"""Our own OpenAPI document attacks the API that serves it."""

from collections import Counter
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode, checks

from tests.serving.conftest import Running

pytestmark = pytest.mark.redis

CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.allow_header_conformance,
    checks.unsupported_method,
    checks.ignored_auth,
]
ATTACKS = {GenerationMode.POSITIVE: 120, GenerationMode.NEGATIVE: 120}  # examples for the route of events

OTHERS = 10


@pytest.mark.parametrize("mode", ATTACKS)
def test_whatever_is_sent_is_answered_as_documented(running: Running, mode: GenerationMode) -> None:
    schema: Any = schemathesis.openapi.from_url(f"{running.api.url}/openapi.json")
    answered: Counter[int] = Counter()

    for found in schema.get_all_operations():
        operation = found.ok()
        of_events = operation.path == "/v1/events"
        if operation.path.endswith("/live"):
            continue  # answers of seconds, or without an end: tests of their own read them
        has_faults = operation.path.startswith("/v1/") and (len(operation.query) or len(operation.body))
        if mode is GenerationMode.POSITIVE or has_faults:
            answered += attack(operation, mode, running, examples=ATTACKS[mode] if of_events else OTHERS)

    lines = [line["event"] for line in running.api.lines()]
    assert "request_failed" not in lines
    assert answered[202 if mode is GenerationMode.POSITIVE else 422] > 5, answered


def attack(operation: Any, mode: GenerationMode, running: Running, *, examples: int) -> Counter[int]:
    """Send what the document makes up for one operation; return how often each status came back."""
    answered: Counter[int] = Counter()

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: Any) -> None:
        headers = {"Authorization": f"Bearer {running.key}"}
        answered[case.call_and_validate(headers=headers, checks=CHECKS).status_code] += 1

    send()
    return answered
