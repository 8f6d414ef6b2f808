"""The race: what the exact side says is what was played, and the sketch errs as often as its width lets it."""

from collections import Counter

import pytest

from domain.race import PLAYS, SONGS, TOP, WIDTHS, Frame, NoRaceError, Race

pytestmark = pytest.mark.fast

# Wrong places of the top ten at the end, the mean of 30 seeds: 3.8, 0.9, 0.1, ... (measured when this was written).
MOST_WRONG = {64: 5.5, 128: 2.2, 256: 0.5, 4096: 0.0}
LEAST_WRONG = {64: 2.0, 128: 0.3}


def test_the_exact_side_is_a_count_of_the_plays() -> None:
    race = Race(width=64, seed=3)
    counted = Counter(race.plays.tolist()).most_common(TOP)

    end = race.result()

    assert [(row.song, row.count) for row in end.rows] == [(f"song-{n + 1:04d}", plays) for n, plays in counted]
    assert end.exact_bytes == 12 * len(set(race.plays.tolist()))
    assert (end.played, len(race.plays), race.plays.min() >= 0, race.plays.max() < SONGS) == (PLAYS, PLAYS, True, True)


def test_no_estimate_is_too_low_and_a_place_with_another_song_is_wrong() -> None:
    frames = list(Race(width=64, seed=1).frames())

    truth = Counter(Race(width=64, seed=1).plays.tolist())
    guesses = [(row.guessed, row.estimate) for row in frames[-1].rows]
    assert all(truth[int(song.removeprefix("song-")) - 1] <= estimate for song, estimate in guesses)
    assert [frame.played for frame in frames] == [1_000 * n for n in range(1, 61)]
    assert all(frame.wrong_rows == sum(row.song != row.guessed for row in frame.rows) for frame in frames)
    assert frames[-1].wrong_rows > 0


@pytest.mark.law
def test_the_narrower_the_sketch_the_more_places_are_wrong() -> None:
    wrong = {width: sum(Race(width, seed).result().wrong_rows for seed in range(10)) / 10 for width in MOST_WRONG}

    assert all(wrong[width] <= most for width, most in MOST_WRONG.items()), wrong
    assert all(wrong[width] >= least for width, least in LEAST_WRONG.items()), wrong


def test_a_wide_sketch_is_larger_than_the_exact_counts_of_this_race() -> None:
    ends = {width: Race(width).result() for width in WIDTHS}

    assert [width for width, end in ends.items() if end.sketch_bytes > end.exact_bytes] == list(WIDTHS[6:])
    assert (ends[4096].sketch_bytes, WIDTHS[6]) == (65_536, 4096)


def test_one_seed_is_one_race_and_another_seed_another() -> None:
    def ends(seed: int) -> Frame:
        return Race(seed=seed).result()

    assert ends(5) == ends(5)
    assert ends(5) != ends(6)


@pytest.mark.parametrize(
    ("width", "seed", "says"), [(100, 1, "width"), (32, 1, "width"), (128, -1, "seed"), (128, 2**32, "seed")]
)
def test_what_is_no_race_is_refused(width: int, seed: int, says: str) -> None:
    with pytest.raises(NoRaceError, match=says):
        Race(width, seed)
