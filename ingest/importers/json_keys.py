"""Whether objects of JSON have the keys that an import wants: one that none has is misspelt, not merely rare."""

from collections.abc import Mapping, Sequence
from typing import Any

from ingest.importers.columns import Fields, UnknownColumnError
from ingest.importers.json_values import value_at


class KeySearch:
    """Looks at the objects of a file until every wanted key has come up."""

    def __init__(self, fields: Fields) -> None:
        self._missing = [name for name in fields.wanted if name not in fields.optional]
        self._present: list[str] | None = None

    @property
    def is_over(self) -> bool:
        """Whether every wanted key was found."""
        return not self._missing

    def may_find_in(self, block: bytes) -> bool:
        """Say whether objects spelled in these bytes may have a missing key; always so before the first object."""
        spelled = {part for name in self._missing for part in (name, name.rsplit(".", maxsplit=1)[-1])}
        return self._present is None or b"\\" in block or any(f'"{part}"'.encode() in block for part in spelled)

    def look(self, objects: Sequence[Mapping[str, Any] | None]) -> None:
        """Cross off the keys that these objects have; None stands for a broken one."""
        things = [thing for thing in objects if thing is not None]
        self._missing = [name for name in self._missing if not any(_has(thing, name) for thing in things)]
        if things and self._present is None:
            self._present = sorted({key for thing in things for key in thing})

    def require_found(self, path: str) -> None:
        """Refuse the file when a key is still missing; a file without any object has all it can have.

        Raises:
            UnknownColumnError: no object has the key.
        """
        if self._missing and self._present is not None:
            raise UnknownColumnError(path, self._missing[0], self._present)


def _has(thing: Mapping[str, Any], name: str) -> bool:
    return name in thing or value_at(thing, name) is not None
