from pathlib import Path

import pytest

from domain.policy import Policy
from domain.tables import LEFT_OUT
from ingest.lake_reader import LakeReader
from ingest.read_files import LakeUnreadableError
from ingest.read_releases import NothingCountedError
from ingest.read_sql import run_sql
from jobs.proof_sql import Proof
from jobs.verify import UnknownProofError, run
from jobs.verify_counts import count_proofs
from jobs.verify_events import event_proofs
from tests.proved_lake import SIZE, proved_lake

MODEL = proved_lake()
PROOFS = [*event_proofs(MODEL.releases[-1]), *count_proofs(MODEL.releases[-1], MODEL.policy)]
NAMES = [proof.name for proof in PROOFS]


@pytest.fixture(scope="module")
def delta_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return proved_lake().write(tmp_path_factory.mktemp("lake"))


def test_a_sound_lake_is_proved_and_every_proof_is_told(delta_lake: Path) -> None:
    told: list[str] = []

    verdicts = run(delta_lake, policy=MODEL.policy, on_start=lambda proof: told.append(proof.name))

    assert [(v.name, v.failures, v.error) for v in verdicts] == [(name, 0, None) for name in NAMES]
    assert told == NAMES


def test_only_the_proofs_asked_for_run(delta_lake: Path) -> None:
    assert [v.name for v in run(delta_lake, only=["left_out_is_bronze"])] == ["left_out_is_bronze"]
    with pytest.raises(UnknownProofError, match="choose among bronze_is_complete"):
        run(delta_lake, only=["everything"])


def test_charts_of_another_size_than_the_policy_says_do_not_hold(delta_lake: Path) -> None:
    (verdict,) = run(delta_lake, policy=Policy(chart_size=SIZE + 1), only=["charts_are_sorted_counts"])

    assert not verdict.holds


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.name)
def test_every_proof_can_be_pasted_into_sql(delta_lake: Path, proof: Proof) -> None:
    with LakeReader(delta_lake) as reader:
        assert run_sql(reader, proof.failing, most=None).rows == []


def test_a_lake_that_lost_a_file_is_not_proved(tmp_path: Path) -> None:
    lake = proved_lake().write(tmp_path)
    sorted((lake / LEFT_OUT.name).rglob("*.parquet"))[-1].unlink()

    with pytest.raises(LakeUnreadableError, match=r"left_out.* a file was removed or damaged"):
        run(lake, policy=MODEL.policy)


def test_a_proof_over_a_damaged_file_does_not_hold_and_others_go_on(tmp_path: Path) -> None:
    lake = proved_lake().write(tmp_path)
    for file in (lake / LEFT_OUT.name).rglob("*.parquet"):  # pages are zeros, the footer is whole
        content = file.read_bytes()
        file.write_bytes(content[:4] + bytes(400) + content[404:])

    verdicts = run(lake, policy=MODEL.policy, only=["left_out_is_bronze", "days_are_sums_of_hours"])

    assert [(v.name, v.holds, v.error is None) for v in verdicts] == [
        ("left_out_is_bronze", False, False),
        ("days_are_sums_of_hours", True, True),
    ]


def test_a_lake_without_release_cannot_be_proved(tmp_path: Path) -> None:
    with pytest.raises(NothingCountedError):
        run(tmp_path)
