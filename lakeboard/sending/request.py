"""What is asked of `send`, what it answers, and the ways in which it stops."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from domain.errors import BadRequestError, LakeboardError
from ingest.importers.request import ImportRequest

STANDARD_INPUT = Path("-")
MAX_BATCH = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRequest:
    """Files, how to read them, and how to send them.

    Attributes:
        files: Files and columns, as for an import; `-` alone = the standard input.
        url: Address of the service, without a path.
        key: Text of the key.
        rate: Events a second; None = not held back so.
        speed: How many times as fast as the events' own times; None = not held back so.
        batch: Events of a request.
        connections: Requests at a time.
        from_row: Rows to leave out at the beginning, counted over all files in the order given.
        give_up_seconds: How long to try while the service takes nothing.
    """

    files: ImportRequest
    url: str
    key: str
    rate: float | None = None
    speed: float | None = None
    batch: int = MAX_BATCH
    connections: int = 4
    from_row: int = 0
    give_up_seconds: float = 300.0


@dataclass(slots=True)
class FileTally:
    """What became of the rows of one file. `read` = `accepted` + all that were refused."""

    path: Path
    source: str
    read: int = 0
    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "file": str(self.path),
            "source": self.source,
            "read": self.read,
            "accepted": self.accepted,
            "refused": self.refused.total(),
            "refused_by_reason": dict(sorted(self.refused.items())),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SendSummary:
    """What became of all rows.

    Attributes:
        files: In the order given.
        repeated: Accepted rows that said again what an earlier one of the same request had said.
        from_row: Rows that were left out at the beginning.
        seconds: From the first request to the last answer.
    """

    files: tuple[FileTally, ...]
    repeated: int
    from_row: int
    seconds: float

    @property
    def accepted(self) -> int:
        """Rows that the service has on disk."""
        return sum(file.accepted for file in self.files)

    @property
    def refused(self) -> int:
        """Rows that are in the file of rejects."""
        return sum(file.refused.total() for file in self.files)


class KeyUnreadableError(BadRequestError):
    """The file with the key is not there, or holds no key."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return (
            f"{self.path} has no key ({self.problem}): `lakeboard up` makes one at its first start, "
            "or give --key-file with the text of a key of role producer"
        )


class BadUrlError(BadRequestError):
    """The address of the service is none."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url

    def __str__(self) -> str:
        return f"--url {self.url!r} is no address of a service: give one such as http://127.0.0.1:8080"


class TwoPacesError(BadRequestError):
    """Both a rate and a speed were asked for."""

    def __str__(self) -> str:
        return "--rate and --speed both say when an event is sent: give only one of them"


class StandardInputError(BadRequestError):
    """The standard input cannot be sent so."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"the standard input {self.problem}: save it to a file first, or change that"


class SourceChangedError(BadRequestError):
    """A file is not what its source was sent or imported from, so its rows would get ids that are taken."""

    def __init__(self, source: str, path: str) -> None:
        super().__init__(source, path)
        self.source = source
        self.path = path

    def __str__(self) -> str:
        return (
            f"source {self.source!r} has other content than {self.path}, whose rows would get the ids of other plays: "
            "give another --source, or --append to add it as a further file, or --id COLUMN"
        )


class NotTakenError(LakeboardError):
    """The service refuses the request as such: sending it again would not help.

    Attributes:
        status: HTTP status.
        said: What the service said.
    """

    def __init__(self, status: int, said: str) -> None:
        super().__init__(status, said)
        self.status = status
        self.said = said

    def __str__(self) -> str:
        if self.status in (401, 403):
            return (
                f"the service does not take this key ({self.status}: {self.said}): "
                "give --key-file with a key of role producer; `lakeboard keys add` makes one"
            )
        return f"the service refused the request ({self.status}: {self.said}): see docs/load.md, mend it and send again"


class GaveUpError(LakeboardError):
    """The service took nothing for too long."""

    def __init__(self, url: str, seconds: float, said: str) -> None:
        super().__init__(url, seconds, said)
        self.url = url
        self.seconds = seconds
        self.said = said

    def __str__(self) -> str:
        return (
            f"{self.url} took nothing for {self.seconds:.0f} s ({self.said}): `lakeboard up` starts the service, "
            "`lakeboard status` shows what is wrong; then send again, what was taken already counts once"
        )


class AnswerError(LakeboardError):
    """An answer does not account for the rows of its request, so nobody can say which were taken."""

    def __init__(self, rows: int, said: str) -> None:
        super().__init__(rows, said)
        self.rows = rows
        self.said = said

    def __str__(self) -> str:
        return (
            f"an answer does not account for the {self.rows} rows of its request ({self.said}): "
            "see whether --url is a lakeboard; sending again is safe"
        )
