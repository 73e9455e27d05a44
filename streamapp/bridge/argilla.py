"""Argilla: a client of the part of its HTTP API (v1, of Argilla 2) that the bridge needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from streamapp.bridge import argilla_records
from streamapp.bridge.argilla_records import Form
from streamapp.bridge.label_tool import REQUEST, Annotation, Given, LabelToolError, Task
from streamapp.bridge.tool_client import TIMEOUT_S, ToolClient
from streamapp.web.queue.cards import Request

PAGE: Final = 200  # records of an answer; Argilla allows 1,000
BULK: Final = 100  # records of a request; Argilla allows 500
HINT: Final = "set GROVE_ARGILLA_API_KEY to the key of an owner or an admin of the workspace"


class ArgillaError(LabelToolError):
    """Argilla refuses a request, or does not answer."""


class Argilla:
    """One dataset of an Argilla server. Several threads may use it after `check`."""

    def __init__(
        self,
        url: str,
        api_key: str,
        dataset: str,
        workspace: str | None = None,
        question: str = "label",
        field: str = "record",
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """dataset: its name or id; workspace: its name, needed if several have such a dataset."""
        self._client = ToolClient(url, "Argilla", api_key, HINT, ArgillaError, timeout_s)
        self._headers = {"X-Argilla-Api-Key": api_key}
        self._dataset, self._workspace, self._question, self._field = dataset, workspace, question, field
        self._id = ""
        self._form: Form | None = None

    @property
    def place(self) -> str:
        return f"dataset {self._dataset}"

    def check(self) -> str:
        """Return the name of the dataset; ArgillaError if requests cannot become records of it."""
        dataset = self._find()
        name, self._id = str(dataset["name"]), str(dataset["id"])
        if dataset.get("status") != "ready":
            self._refuse(f"dataset {name} must be published, its status is {dataset.get('status')}")
        if not dataset.get("allow_extra_metadata"):
            self._refuse(f"dataset {name} must allow extra metadata, which identifies the request of a label")
        field = self._part("fields", self._field, "text")
        question = self._part("questions", self._question, "label_selection")
        classes = [option.get("value") for option in question["settings"].get("options") or ()]
        self._form = Form(
            self._field,
            bool(field["settings"].get("use_markdown")),
            self._question,
            str(question["id"]),
            frozenset(name for name in classes if isinstance(name, str)),
        )
        return name

    def tasks(self) -> Iterator[Task]:
        """Yield all records of the dataset with their responses, the oldest first."""
        offset = 0
        while True:
            asked = {"include": "responses", "limit": PAGE, "offset": offset}
            records = self._items(f"/api/v1/datasets/{self._id}/records?{urlencode(asked)}")
            yield from records
            if len(records) < PAGE:
                return
            offset += PAGE

    def add_requests(self, requests: Sequence[Request]) -> None:
        """Make a record of each request; a record of the same request is written again, not twice."""
        assert self._form is not None
        records = [argilla_records.record_of(request, self._form) for request in requests]
        for start in range(0, len(records), BULK):
            body = {"items": records[start : start + BULK]}
            self._call("PUT", f"/api/v1/datasets/{self._id}/records/bulk", body)

    def request_of(self, task: Task) -> str | None:
        metadata = task.get("metadata")
        request = metadata.get(REQUEST) if isinstance(metadata, dict) else None
        return request if isinstance(request, str) else None

    def annotations_of(self, task: Task) -> Sequence[Annotation]:
        return task.get("responses") or ()

    def given_by(self, task: Task, annotation: Annotation) -> Given | None:
        return argilla_records.given_by(task, annotation, self._question)

    def _find(self) -> Mapping[str, Any]:
        """Return the dataset of this name or id that the user may see."""
        datasets = [
            dataset
            for dataset in self._items("/api/v1/me/datasets")
            if self._dataset in (dataset.get("name"), dataset.get("id"))
        ]
        if self._workspace is not None:
            spaces = {space["name"]: space["id"] for space in self._items("/api/v1/me/workspaces")}
            if self._workspace not in spaces:
                self._refuse(
                    f"--workspace {self._workspace} must be one of {', '.join(sorted(spaces)) or 'none'}"
                )
            datasets = [dataset for dataset in datasets if dataset["workspace_id"] == spaces[self._workspace]]
        if not datasets:
            self._refuse(f"--dataset {self._dataset} must be the name or id of a dataset of the user")
        if len(datasets) > 1:
            self._refuse(f"{len(datasets)} workspaces have a dataset {self._dataset}; name one: --workspace")
        return datasets[0]

    def _part(self, kind: str, name: str, wanted_type: str) -> Mapping[str, Any]:
        """Return the field or question of a name; ArgillaError if it has another type."""
        option = "--field" if kind == "fields" else "--question"
        parts = {part["name"]: part for part in self._items(f"/api/v1/datasets/{self._id}/{kind}")}
        if name not in parts:
            self._refuse(f"{option} {name} must be one of the {kind} {', '.join(sorted(parts)) or '(none)'}")
        part: Mapping[str, Any] = parts[name]
        if part["settings"].get("type") != wanted_type:
            self._refuse(
                f"{option} {name} must have the type {wanted_type}, it has {part['settings'].get('type')}"
            )
        return part

    def _refuse(self, problem: str) -> None:
        message = f"Argilla at {self._client.url}: {problem}"
        raise ArgillaError(message, passes=False)

    def _items(self, path: str) -> list[dict[str, Any]]:
        answer = self._call("GET", path)
        items = answer.get("items") if isinstance(answer, dict) else None
        if not isinstance(items, list):
            self._refuse(f"{path.partition('?')[0]} must have items; --url must be the address of Argilla 2")
        return list(items or ())

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        return self._client.send(method, path, body, self._headers)
