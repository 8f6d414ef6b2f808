"""What a play may look like: ids, regions, counts, and why a row is refused."""

import unicodedata
from enum import StrEnum

MAX_ID_BYTES = 256
MAX_REGION_LENGTH = 32
UNKNOWN_REGION = "ZZ"
ALL_REGIONS = "*"
_REGION_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


class Reject(StrEnum):
    """Reason codes of `bronze/rejects`. Stable: people write alerts on them."""

    UNREADABLE_ROW = "unreadable_row"  # the file's own format is broken there
    WRONG_COLUMNS = "wrong_columns"  # more or fewer fields than the header
    NOT_UTF8 = "not_utf8"
    ITEM_MISSING = "item_missing"
    ITEM_INVALID = "item_invalid"  # over 256 bytes, or control characters
    ID_MISSING = "id_missing"
    ID_INVALID = "id_invalid"
    USER_INVALID = "user_invalid"
    REGION_INVALID = "region_invalid"
    TIME_MISSING = "time_missing"
    TIME_INVALID = "time_invalid"
    TIME_AMBIGUOUS = "time_ambiguous"  # a local time that the clock showed twice
    TIME_NONEXISTENT = "time_nonexistent"  # a local time that the clock jumped over
    TIME_OUT_OF_RANGE = "time_out_of_range"  # before 1900
    IN_THE_FUTURE = "in_the_future"
    DURATION_INVALID = "duration_invalid"
    COUNT_INVALID = "count_invalid"


class LeftOut(StrEnum):
    """Reason codes of `silver/left_out`: why a received event does not count."""

    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    TOO_SHORT = "too_short"


COPY_REASONS = (LeftOut.DUPLICATE, LeftOut.CONFLICT)


def normal_id(text: str) -> str | None:
    """Return an id in its one spelling, or None when it cannot be an id.

    Ids are 1 to 256 bytes of UTF-8 in NFC without control characters. Case is kept: ids that differ in case differ.
    A lone surrogate is no UTF-8, so it is refused too.
    """
    spelled = unicodedata.normalize("NFC", text)
    try:
        size = len(spelled.encode())
    except UnicodeEncodeError:
        return None
    if not 1 <= size <= MAX_ID_BYTES or any(unicodedata.category(c) == "Cc" for c in spelled):
        return None
    return spelled


def normal_region(text: str | None) -> str | None:
    """Return a region code upper-cased, `ZZ` when it is absent or empty, None when it cannot be a region.

    `*` means all regions in questions and is never accepted in an event.
    """
    if not text:
        return UNKNOWN_REGION
    if len(text) > MAX_REGION_LENGTH or not _REGION_CHARACTERS.issuperset(text):
        return None
    return text.upper()
