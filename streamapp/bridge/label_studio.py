"""Label Studio: a client of the part of its HTTP API that the bridge needs; no message has its token."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from streamapp.bridge import tasks
from streamapp.bridge.label_tool import REQUEST, Annotation, Given, LabelToolError, Task
from streamapp.bridge.tasks import Choice
from streamapp.bridge.tool_client import TIMEOUT_S, ToolClient
from streamapp.web.queue.cards import Request

PAGE: Final = 100
JWT_PARTS: Final = 3
HINT: Final = "set GROVE_LABEL_STUDIO_TOKEN to the token of a user who may see the project"


class LabelStudioError(LabelToolError):
    """Label Studio refuses a request, or does not answer."""


class LabelStudio:
    """One project of a Label Studio server. Several threads may use it."""

    def __init__(
        self,
        url: str,
        token: str,
        project: int,
        choice: Choice | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """token: a legacy token, or a personal access token, which is exchanged for short-lived tokens."""
        self._client = ToolClient(url, "Label Studio", token, HINT, LabelStudioError, timeout_s)
        self.project = project
        self._choice = choice or Choice()
        self._token = token
        self._access = ""
        self._lock = threading.Lock()

    @property
    def place(self) -> str:
        return f"project {self.project}"

    def check(self) -> str:
        """Return the title of the project; LabelStudioError if it cannot be read."""
        return str(self._call("GET", f"/api/projects/{self.project}").get("title", ""))

    def tasks(self) -> Iterator[dict[str, Any]]:
        """Yield all tasks of the project with their annotations."""
        page = 1
        while True:
            asked = {"project": self.project, "page": page, "page_size": PAGE, "fields": "all"}
            try:
                answer = self._call("GET", f"/api/tasks?{urlencode(asked)}")
            except LabelStudioError as error:
                if page > 1 and "404" in str(error):
                    return  # after the last page
                raise
            page_of_tasks = answer["tasks"] if isinstance(answer, dict) else answer
            yield from page_of_tasks
            if len(page_of_tasks) < PAGE:
                return
            page += 1

    def add_requests(self, requests: Sequence[Request]) -> None:
        self.add([tasks.task_of(request, self._choice) for request in requests])

    def add(self, new_tasks: Sequence[Task]) -> int:
        """Import tasks; return the number of tasks that Label Studio has accepted."""
        answer = self._call("POST", f"/api/projects/{self.project}/import", list(new_tasks))
        return int(answer.get("task_count", len(new_tasks)))

    def request_of(self, task: Task) -> str | None:
        data = task.get("data")
        request = data.get(REQUEST) if isinstance(data, dict) else None
        return request if isinstance(request, str) else None

    def annotations_of(self, task: Task) -> Sequence[Annotation]:
        return task.get("annotations") or ()

    def given_by(self, task: Task, annotation: Annotation) -> Given | None:
        return tasks.given_by(task, annotation)

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        try:
            return self._client.send(method, path, body, self._authorization())
        except LabelStudioError as error:
            if not self._is_personal or " 401" not in str(error):
                raise
        with self._lock:
            self._access = ""  # it has expired
        return self._client.send(method, path, body, self._authorization())

    @property
    def _is_personal(self) -> bool:
        return self._token.count(".") == JWT_PARTS - 1

    def _authorization(self) -> dict[str, str]:
        if not self._is_personal:
            return {"Authorization": f"Token {self._token}"}
        with self._lock:
            if not self._access:
                answer = self._client.send("POST", "/api/token/refresh", {"refresh": self._token}, {})
                self._access = str(answer.get("access", ""))
            return {"Authorization": f"Bearer {self._access}"}
