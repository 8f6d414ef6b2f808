"""A lake with everything in it that `lakeboard verify` looks at."""

from domain.policy import Policy
from domain.rules import Rules
from tests.lakes import ModelLake, Play, at

SIZE = 2
RULES = Rules.parse(
    "[[minimum_duration]]\nduration_ms = 30000\n"
    '[[minimum_duration]]\nfrom = 2026-11-14T02:00:00Z\nduration_ms = 10\nmissing = "exclude"'
)


def proved_lake() -> ModelLake:
    """Copies of both kinds, rules of two dates, ties beyond the UTF-16 order, history, restatements in a chain."""
    model = ModelLake(rules=RULES, policy=Policy(chart_size=SIZE))
    tied = [Play(f"tie{n}", item, at(1), "IN") for n, item in enumerate(["\uff5e", "\U0001f3b5", "z"])]
    short = [Play("s1", "short", at(1), duration_ms=29_999), Play("s2", "short", at(3))]
    copies = [Play("tie0", "\uff5e", at(1), "IN"), Play("tie0", "z", at(3), "SE", duration_ms=50)]
    model.release([*tied, *short, *copies, Play("long", "z", at(3), duration_ms=10)], frontier=at(2))
    model.release([Play("late1", "z", at(1)), Play("tie1", "\U0001f3b5", at(1), "IN")], frontier=at(0, day=15))
    model.release([Play("late2", "z", at(1)), Play("new", "z", at(2, day=15), duration_ms=99)], frontier=at(1, day=15))
    return model
