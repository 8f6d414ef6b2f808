"""`lakeboard doctor --capacity` as a user runs it."""

import json

import pytest
from click.testing import CliRunner

from domain.capacity import Load, bucket_sizes
from domain.speed_policy import DEFAULT_SPEED_POLICY
from lakeboard.cli import cli

pytestmark = pytest.mark.fast


def said(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["doctor", "--capacity", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_it_says_for_a_load_what_each_part_takes_at_most_and_all_together() -> None:
    parts = json.loads(said("--json", "--rate", "2000", "--regions", "30", "--partitions", "4"))
    shown = said("--rate", "2000", "--regions", "30", "--partitions", "4")

    expected = bucket_sizes(DEFAULT_SPEED_POLICY, Load(plays_per_second=2000, regions=30, partitions=4))
    assert [(one["part"], one["buckets"], one["bytes"], one["ceiling_bytes"]) for one in parts] == [
        (one.part, one.buckets, one.size_bytes, one.ceiling_bytes) for one in expected
    ]
    assert all(one.part in shown for one in expected)
    together = next(line for line in shown.splitlines() if "together" in line)
    assert f"{sum(one['bytes'] for one in parts) / (1 << 20):,.0f}" in together
    assert "At 2,000 plays/s in 30 regions and 4 partitions" in shown


def test_a_busier_service_takes_more_and_a_load_that_cannot_be_is_refused() -> None:
    quiet, busy = (sum(one["bytes"] for one in json.loads(said("--json", "--rate", rate))) for rate in ("10", "10000"))
    refused = CliRunner().invoke(cli, ["doctor", "--capacity", "--partitions", "0"])

    assert 0 < quiet < busy
    assert refused.exit_code == 2
    assert "0 is not in the range 1<=x<=1024" in refused.output


def test_settings_bound_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def most(**settings: str) -> int:
        for name, value in settings.items():
            monkeypatch.setenv(f"LAKEBOARD_{name}", value)
        parts = json.loads(said("--json"))
        return sum(part["ceiling_bytes"] for part in parts if part["ceiling_bytes"] is not None)

    plain = most()
    assert 1.9 < most(LIVE_WIDTH="8192") / plain < 2.1
    assert most(LIVE_WIDTH="8192", LIVE_REGIONS="20") < plain / 3
