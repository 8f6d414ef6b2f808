"""Made-up numbers that are the same in every version: what demonstrations and generated plays are drawn from.

Only the raw numbers of PCG64 are used and everything else is computed from them here: numpy keeps that stream the
same in all versions, which it does not promise of its distributions.
"""

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]


def even_shares(raw: UInt64s) -> Floats:
    """Return raw numbers as numbers from 0, included, to 1, excluded, evenly spread."""
    return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53


def zipf_shares(names: int, skew: float) -> Floats:
    """Return cumulated shares by Zipf's law, not divided by their sum: the n-th of 1, 2, ... has `n^-skew`."""
    shares: Floats = np.cumsum(np.arange(1, names + 1, dtype=np.float64) ** -skew)
    return shares


def drawn(shares: Floats, evenly: Floats) -> Int64s:
    """Return places drawn by their cumulated shares.

    Args:
        shares: Cumulated, of each place.
        evenly: Numbers from 0, included, to 1, excluded; one a draw.
    """
    places: Int64s = np.searchsorted(shares, evenly * shares[-1], side="right")
    return np.minimum(places, len(shares) - 1)
