"""Known schemas: the schemas of a process by id; a thread looks up those that are needed.

An id that cannot be looked up now is looked up again until the registry answers. An event loop may call
`schemas` and `request`, which never wait; `look_up` waits.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from topics.errors import RegistryError, UnknownSchemaError
from topics.registry.absent_ids import AbsentIds
from topics.registry.client import Registry
from topics.registry.registered_schema import RegisteredSchema, SchemaId

logger = logging.getLogger(__name__)

FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 10.0
MOST_LOGGED: Final = 20
"""Absent ids at a time that have a line of the log each: a producer may make up any number of ids."""

Prepare = Callable[[RegisteredSchema], object]
"""A function that makes the reader of a schema, which may take seconds. Raises RegistryError."""


@dataclass(frozen=True, slots=True)
class LookupStatus:
    """The state of the look-ups, for health pages and metrics."""

    waiting: int = 0
    """Ids that are being looked up."""
    failure: str = ""
    """Why the last look-up failed; empty if it has not."""
    failures: int = 0
    """Failed look-ups since the start."""


class KnownSchemas:
    """Schemas of one registry; every method may be called from any thread."""

    def __init__(self, registry: Registry, prepare: Prepare) -> None:
        self._registry, self._prepare = registry, prepare
        self._known: dict[SchemaId, RegisteredSchema] = {}
        self._absent = AbsentIds()
        self._wanted: dict[SchemaId, None] = {}  # in order
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._failure = ""
        self._failures = 0
        self._closed = False
        self._tell: Callable[[], object] = lambda: None

    @property
    def place(self) -> str:
        """The property and value that name the registry."""
        return self._registry.place

    @property
    def status(self) -> LookupStatus:
        """The current state."""
        with self._changed:
            return LookupStatus(len(self._wanted), self._failure, self._failures)

    def on_result(self, tell: Callable[[], object]) -> None:
        """Have a function called, in the thread, after each look-up that succeeds."""
        self._tell = tell

    def schemas(self, ids: Iterable[SchemaId]) -> tuple[Mapping[SchemaId, RegisteredSchema], set[SchemaId]]:
        """Return the known schemas among some ids, and the ids that the registry does not have."""
        present, absent = {}, set()
        for schema_id in ids:
            if (schema := self._known.get(schema_id)) is not None:
                present[schema_id] = schema
            elif schema_id in self._absent:
                absent.add(schema_id)
        return present, absent

    def are_pending(self, ids: Iterable[SchemaId]) -> bool:
        """Whether some ids are still to be looked up.

        An absent id may be forgotten before its records are read. So a partition waits for look-ups, not for
        their results: it requests again the results that it still lacks.
        """
        with self._changed:
            return not self._closed and any(schema_id in self._wanted for schema_id in ids)

    def request(self, ids: Collection[SchemaId]) -> None:
        """Have ids looked up."""
        with self._changed:
            self._wanted.update(dict.fromkeys(ids))
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="schemas", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def look_up(self, schema_id: SchemaId) -> RegisteredSchema:
        """Return a schema, with its reader made; raises RegistryError, UnknownSchemaError."""
        schema = self._known.get(schema_id)
        if schema is None:
            schema = self._registry.schema(schema_id)
            self._prepare(schema)
            self._known[schema_id] = schema
        return schema

    def close(self) -> None:
        """End the thread; a look-up that is under way has no effect any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        pause = 0.0
        while True:
            with self._changed:
                if pause:
                    self._changed.wait_for(lambda: self._closed, pause)
                self._changed.wait_for(lambda: self._closed or bool(self._wanted))
                if self._closed:
                    return
                schema_id = next(iter(self._wanted))
            failure = self._attempt(schema_id)
            with self._changed:
                if failure:
                    pause = min(2 * pause or FIRST_PAUSE_S, LONGEST_PAUSE_S)
                    self._failures += 1
                    # The other ids come first: one schema that cannot be used must not hold them up.
                    self._wanted[schema_id] = self._wanted.pop(schema_id)
                else:
                    pause = 0.0
                    del self._wanted[schema_id]
                self._report(failure, schema_id)
            if not failure:
                self._tell()

    def _attempt(self, schema_id: SchemaId) -> str:
        """Look up an id; return why it has to be looked up again, empty if not."""
        try:
            self.look_up(schema_id)
        except UnknownSchemaError as error:
            self._note_absent(schema_id, error)
        except RegistryError as error:
            return str(error)
        except Exception as error:  # a fault in a reader must not end the thread
            logger.exception("The reader of schema %s cannot be made", schema_id)
            return f"the reader of schema {schema_id} cannot be made: {type(error).__name__}: {error}"
        return ""

    def _note_absent(self, schema_id: SchemaId, error: UnknownSchemaError) -> None:
        with self._changed:
            n_absent = self._absent.add(schema_id)
        if n_absent <= MOST_LOGGED:
            logger.warning("Records with schema %s become dead letters: %s", schema_id, error)
        elif n_absent == MOST_LOGGED + 1:
            logger.warning(
                "%s does not have more than %d schemas that records name; further ids are not logged, and "
                "the topic of dead letters has their records",
                self.place,
                MOST_LOGGED,
            )

    def _report(self, failure: str, schema_id: SchemaId) -> None:
        """Log the first failure of several, and the end of them."""
        if failure and not self._failure:
            logger.warning("Schema %s is looked up again until it is there: %s", schema_id, failure)
        if self._failure and not failure:
            logger.info("Schemas are found again: %s answers", self.place)
        self._failure = failure
