"""Label tool: the part of a label tool that the bridge uses, and the errors and labels that it gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from streamapp.errors import StreamappError
from streamapp.web.queue.cards import Request

REQUEST, KEY, INSTANCE, PARTITION = "grove_request_id", "grove_key", "grove_instance_id", "grove_partition"
"""Members of a task that identify the request of an annotation."""
INT32: Final = 1 << 31
ANNOTATOR_MAX: Final = 200
"""Characters of a user's name in a label, at most."""

Task = Mapping[str, Any]
"""A task in the tool's own form."""
Annotation = Mapping[str, Any]
"""An annotation in the tool's own form."""


class LabelToolError(StreamappError):
    """A label tool refuses a request, or does not answer; `passes`: the same request may succeed later."""

    def __init__(self, message: str, *, passes: bool) -> None:
        super().__init__(message)
        self.passes = passes


@dataclass(frozen=True, slots=True)
class Given:
    """A label that an annotator gave in the label tool."""

    annotation: int | str
    key: bytes
    partition: int
    instance_id: str
    label: str | None  # None: declined
    annotator: str


class LabelTool(Protocol):
    """One project of a label tool. Several threads may use it."""

    @property
    def place(self) -> str:
        """Return the name of the project in messages."""

    def check(self) -> str:
        """Return the title of the project; LabelToolError if it cannot be used."""

    def add_requests(self, requests: Sequence[Request]) -> None:
        """Make a task of each request; LabelToolError."""

    def tasks(self) -> Iterator[Task]:
        """Yield all tasks of the project with their annotations; LabelToolError."""

    def request_of(self, task: Task) -> str | None:
        """Return the request id of a task; None: the bridge did not make it."""

    def annotations_of(self, task: Task) -> Iterable[Annotation]:
        """Return the annotations in a task that `tasks` has yielded."""

    def given_by(self, task: Task, annotation: Annotation) -> Given | None:
        """Return the label of an annotation; None: the task is not ours, or no class was chosen yet."""


def members_of(request: Request) -> dict[str, Any]:
    """Return the members of a task that identify its request."""
    return {
        REQUEST: request.request_id,
        KEY: request.key,
        INSTANCE: request.instance_id,
        PARTITION: request.partition,
        "grove_asked_ms": request.asked_ms,
        "grove_expires_ms": request.expires_ms,
        "grove_strategy": request.strategy,
    }


def place_of(members: Any) -> tuple[bytes, int, str] | None:
    """Return key, partition and instance id of a task from its members; None: they are not ours."""
    if not isinstance(members, dict):
        return None
    texts = [members.get(name) for name in (REQUEST, KEY, INSTANCE)]
    partition = members.get(PARTITION)
    if not all(isinstance(text, str) and is_text(text) for text in texts):
        return None
    if type(partition) is not int or not 0 <= partition < INT32:
        return None
    return members[KEY].encode(), partition, members[INSTANCE]


def is_text(text: str) -> bool:
    """Return whether a text can be sent: JSON may contain half a surrogate pair, UTF-8 may not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
