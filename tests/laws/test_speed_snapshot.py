"""A partition that was stored and restored counts on as if nothing had happened: random logs, random restarts."""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.batch_view import BatchView
from domain.live_windows import LiveWindow
from domain.rules import Rules
from domain.speed_policy import SpeedPolicy
from speed_layer import buckets as buckets_module
from speed_layer import partition as partition_module
from speed_layer import snapshot as snapshot_module
from speed_layer.changes import ChangedList
from speed_layer.partition import LivePartition, Meter
from speed_layer.snapshot import Part, restored, snapshot
from speed_layer.snapshot_rest import UnusableStateError, decode_rest, state_fingerprint
from tests.laws.test_speed_layer import REGIONS, ROOMY, RULES, TINY, cut, log_of, require_bounds, seeds, zipf_log
from tests.speed_layer.live_model import LiveModel, Played, batch_of, certified_through, view_of

pytestmark = pytest.mark.law

GOLDEN = Path(__file__).parents[1] / "golden" / "speed_state_v1.json"

Said = tuple[list[tuple[str, int, int]], object, int, int]


def again(partition: LivePartition) -> LivePartition:
    return restored(snapshot(partition).encoded(), partition.policy, partition.rules)


def resumed(partition: LivePartition, views: Sequence[BatchView]) -> LivePartition:
    """Restore a partition and hand over again the view that it used, and the newest, as a consumer does."""
    same = again(partition)
    assert (same.view, same.buckets.frontier, same.offset) == (None, partition.buckets.frontier, partition.offset)
    for view in [*(one for one in views if one.version == partition.view), *views[-1:]]:
        assert same.certified(view, offset=view.offset("log", 0))
    assert same.view == partition.view
    return same


def said(found: ChangedList) -> Said:
    rows = sorted(zip(found.item_ids, found.lower, found.upper, strict=True))
    return rows, found.cut, found.residual, found.total


def lists_of(partition: LivePartition) -> dict[tuple[LiveWindow, str, int], Said]:
    """Every list that anybody can ask for."""
    return {
        (kind, region, size): said(partition.top(kind, region, size=size))
        for kind in LiveWindow
        for region in ("*", *REGIONS)
        for size in (3, 40)
    }


def require_alike(one: LivePartition, other: LivePartition) -> None:
    """All that is stored is the same byte by byte, and so is all that is said."""
    assert snapshot(one).encoded() == snapshot(other).encoded()
    assert lists_of(one) == lists_of(other)
    assert one.meters == other.meters
    assert one.pending.tardy == other.pending.tardy
    assert one.as_of == other.as_of
    assert np.array_equal(one.buckets.pins, other.buckets.pins)
    chunks, more = one.retry.chunks(), other.retry.chunks()
    assert list(chunks) == list(more)
    assert all(np.array_equal(chunks[minute], more[minute]) for minute in chunks)


def check_restarts(seed: int, policy: SpeedPolicy) -> None:
    """Count a log twice, once with restarts between batches; views and readers come to both at the same moments."""
    random = Random(seed)
    plays = log_of(random)
    straight, stopped, model = LivePartition(policy, RULES), LivePartition(policy, RULES), LiveModel(policy, RULES)
    reported: dict[tuple[LiveWindow, str], Said] = {}
    views: list[BatchView] = []
    for batch in cut(plays, random):
        straight.count(batch_of(batch))
        stopped.count(batch_of(batch))
        for play in batch:
            model.read(play, straight.regions.names)
        if random.random() < 0.3:
            frontier, offset = certified_through(plays, random.randrange(len(plays)), policy.grace)
            model.frontier, model.offset = max(frontier, model.frontier or frontier), max(offset, model.offset)
            sent, version = [(play, 0) for play in model.sent], str(len(views))
            views.append(view_of(sent, model.frontier, {0: model.offset}, most=4, version=version))
            assert straight.certified(views[-1], offset=model.offset)
            assert stopped.certified(views[-1], offset=model.offset)
        if random.random() < 0.5:
            stopped = resumed(stopped, views)
        if random.random() < 0.5:
            reported.update({(one.kind, one.region): said(one) for one in straight.changed()})
            last = {(one.kind, one.region): said(one) for one in stopped.changed()}  # what is gone comes first
            assert {which: reported[which] for which in last} == last
        if random.random() < 0.2:
            stopped = resumed(stopped, views)
    require_alike(straight, stopped)


@settings(max_examples=settings().max_examples // 2)
@given(seeds)
def test_a_partition_counts_on_after_a_restart_as_if_there_had_been_none(seed: int) -> None:
    check_restarts(seed, TINY)
    check_restarts(seed, ROOMY)


@settings(max_examples=8)
@given(seeds, st.randoms(use_true_random=False))
def test_bounds_hold_after_restarts_while_ids_are_dropped_and_late_plays_are_folded(seed: int, random: Random) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_module, "_COMPACT_FROM", 1)
        patch.setattr(buckets_module, "_MOST_IN_TAIL", 2)
        patch.setattr(snapshot_module, "_ITEMS_A_PART", 2)
        plays = log_of(Random(seed))
        partition, model = LivePartition(TINY, RULES), LiveModel(TINY, RULES)
        for batch in cut(plays, random):
            partition.count(batch_of(batch))
            for play in batch:
                model.read(play, partition.regions.names)
            partition.changed()
            partition = again(partition)
            require_bounds(partition, model)


def test_what_does_not_change_is_stored_once() -> None:
    partition = long_counted()
    before = snapshot(partition).parts
    kinds = {name.partition("/")[0] for name in before}
    assert kinds == {"minute", "hour", "fine", "retry", "items", "pins", "tail", "rest"}
    present, minute = (int(partition.as_of.timestamp()) // seconds for seconds in (10, 60))
    assert changed_parts(partition, before) <= {"rest", f"retry/{minute}"}
    partition.count(batch_of([Played(5000, partition.as_of, 5000, "new", "IN", partition.as_of)]))
    assert changed_parts(partition, before) == {f"fine/{present}", "items/0", "rest", f"retry/{minute}"}


def changed_parts(partition: LivePartition, before: Mapping[str, Part]) -> set[str]:
    return {name for name, part in snapshot(partition).parts.items() if not part.is_same(before.get(name))}


def long_counted() -> LivePartition:
    """More than an hour of plays, some of them late: every kind of part is there."""
    partition = LivePartition(TINY, Rules())
    partition.count(batch_of(zipf_log(5, minutes=70, a_minute=6)))
    late = partition.as_of - timedelta(minutes=30)
    partition.count(batch_of([Played(4000, partition.as_of, 4000, "late", "IN", late)]))
    partition.changed()
    return partition


# --- what is not used ---


def some_state() -> dict[str, bytes]:
    return snapshot(long_counted()).encoded()


def test_a_state_of_another_policy_or_other_rules_is_not_used() -> None:
    with pytest.raises(UnusableStateError, match="counted under policy"):
        restored(some_state(), ROOMY, Rules())
    with pytest.raises(UnusableStateError, match="counted under policy"):
        restored(some_state(), TINY, RULES)


@pytest.mark.parametrize("kind", ["rest", "items", "fine", "pins"])
def test_a_state_without_one_of_its_parts_is_not_used(kind: str) -> None:
    state = some_state()
    (gone, *_) = [name for name in state if name.startswith(kind)]
    del state[gone]
    with pytest.raises(UnusableStateError, match="missing"):
        restored(state, TINY, Rules())


@pytest.mark.parametrize("kind", ["minute", "hour", "fine", "retry", "items", "rest"])
def test_a_damaged_state_is_not_used(kind: str) -> None:
    state = some_state()
    (torn, *_) = [name for name in state if name.startswith(kind)]
    state[torn] = state[torn][:-3]
    with pytest.raises(UnusableStateError):
        restored(state, TINY, Rules())


def test_buckets_of_a_region_whose_number_is_anothers_are_not_used() -> None:
    partition = long_counted()
    state = snapshot(partition).encoded()
    names = partition.regions.names
    names[2], names[3] = names[3], names[2]
    swapped = snapshot(partition).encoded()
    with pytest.raises(UnusableStateError, match="number of another one"):
        restored(state | {"rest": swapped["rest"]}, TINY, Rules())


def test_a_state_of_a_later_format_is_refused_before_anything_else_is_read() -> None:
    with pytest.raises(UnusableStateError, match="format 2, and this lakeboard knows 1"):
        decode_rest(b"\x81\xa7version\x02", made_with="")


# --- golden bytes ---


def golden_partition() -> LivePartition:
    partition = LivePartition(SpeedPolicy(regions=3), Rules())
    partition.count(batch_of(log_of(Random(7), longest=12)))
    partition.changed()
    partition.meters = +partition.meters
    return partition


def test_the_rest_of_a_state_of_version_1_is_read_for_ever() -> None:
    """Bytes written once; a change of the policy's defaults or of what is stored is a new version or fingerprint."""
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    body = bytes.fromhex(golden["bytes"])
    rest = decode_rest(body, made_with=golden["made_with"])
    assert (rest.position, rest.log_ms, rest.regions, rest.items) == (
        golden["position"],
        golden["log_ms"],
        golden["regions"],
        golden["items"],
    )
    assert rest.meters == golden["meters"]
    partition = golden_partition()
    if state_fingerprint(partition.policy, partition.rules) == golden["made_with"]:
        assert snapshot(partition).parts["rest"].encode() == body


# --- faults that the law must see ---


def some_restart_shows(seeds: Sequence[int] = range(60)) -> bool:
    for seed in seeds:
        try:
            check_restarts(seed, TINY)
        except AssertionError:
            return True
    return False


@pytest.mark.parametrize("kind", ["minute", "hour", "tail", "retry"])
def test_the_law_sees_a_part_that_is_not_stored(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    def without(partition: LivePartition) -> LivePartition:
        kept = {name: body for name, body in snapshot(partition).encoded().items() if not name.startswith(kind)}
        return restored(kept, partition.policy, partition.rules)

    monkeypatch.setitem(globals(), "again", without)
    assert some_restart_shows()


def test_the_law_sees_pins_that_are_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = again

    def without(partition: LivePartition) -> LivePartition:
        same = whole(partition)
        for block in same.buckets.fine.values():
            block.pinned = block.pinned[:0]
        return same

    monkeypatch.setitem(globals(), "again", without)
    assert some_restart_shows(range(200))


def test_every_meter_has_a_name_that_is_stored() -> None:
    assert [Meter(meter.value) for meter in Meter] == list(Meter)
