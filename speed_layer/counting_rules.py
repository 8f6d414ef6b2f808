"""Counting rules over columns: the same judgement as `Rules.too_short`, for a whole batch."""

from datetime import timedelta

import numpy as np
import numpy.typing as npt

from domain.rules import Missing, Rules
from domain.windows import EPOCH
from speed_layer.play_batch import NOT_SAID, Int64s

_MICROSECOND = timedelta(microseconds=1)


def counting(rules: Rules, *, happened_us: Int64s, durations_ms: Int64s) -> npt.NDArray[np.bool_]:
    """Say of each play whether the rules let it count.

    Args:
        rules: In force.
        happened_us: Event times, microseconds since 1970 UTC.
        durations_ms: `NOT_SAID` where nothing was said.
    """
    count = np.ones(len(happened_us), dtype=np.bool_)
    if not rules.minimum_durations:
        return count
    starts = [(rule.effective_from - EPOCH) // _MICROSECOND for rule in rules.minimum_durations]
    in_force = np.searchsorted(np.array(starts, dtype=np.int64), happened_us, side="right") - 1
    for number, rule in enumerate(rules.minimum_durations):
        judged = in_force == number
        said = durations_ms != NOT_SAID
        count[judged & said & (durations_ms < rule.duration_ms)] = False
        if rule.missing is Missing.EXCLUDE:
            count[judged & ~said] = False
    return count
