"""Known schemas: the schemas of a process by id; a thread looks up those that are needed.

An id that cannot be looked up now is looked up again until the registry answers. A reader that cannot be
made is tried MOST_TRIES times: then the id counts as absent for a while. An event loop may call `schemas`,
`request` and `forget_unused`, which never wait; `look_up` waits.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from topics.errors import ReaderError, RegistryError, UnknownSchemaError
from topics.registry.absent_ids import AbsentIds, not_registered
from topics.registry.client import Registry
from topics.registry.registered_schema import RegisteredSchema, SchemaId

logger = logging.getLogger(__name__)

FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 10.0
MOST_TRIES: Final = 10
"""Attempts to make a reader, over about a minute: memory or disk may be short for a moment."""
MOST_KNOWN: Final = 2048
"""Schemas that are kept: fewer than readers (`schema_readers`), so no event loop makes a reader again."""
MOST_LOGGED: Final = 20
"""Absent ids at a time that have a line of the log each: a producer may make up any number of ids."""

Prepare = Callable[[RegisteredSchema], object]
"""A function that makes the reader of a schema, which may take seconds.

Raises RegistryError if waiting helps, ReaderError if that is not sure.
"""


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
        self._known: OrderedDict[SchemaId, RegisteredSchema] = OrderedDict()  # the last used at the end
        self._tries: OrderedDict[SchemaId, int] = OrderedDict()  # attempts to make a reader that failed
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

    def schemas(
        self, ids: Iterable[SchemaId]
    ) -> tuple[Mapping[SchemaId, RegisteredSchema], Mapping[SchemaId, str]]:
        """Return the known schemas among some ids, and for each id that cannot be had the reason."""
        present: dict[SchemaId, RegisteredSchema] = {}
        absent: dict[SchemaId, str] = {}
        with self._changed:
            for schema_id in ids:
                if (schema := self._known.get(schema_id)) is not None:
                    self._known.move_to_end(schema_id)
                    present[schema_id] = schema
                elif (reason := self._absent.reason(schema_id)) is not None:
                    absent[schema_id] = reason
        return present, absent

    def forget_unused(self, needed: Collection[SchemaId]) -> None:
        """Forget the least recently used schemas beyond MOST_KNOWN, but none of `needed`."""
        with self._changed:
            if len(self._known) <= MOST_KNOWN:
                return
            for schema_id in [schema_id for schema_id in self._known if schema_id not in needed]:
                if len(self._known) <= MOST_KNOWN:
                    return
                del self._known[schema_id]

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
        """Return a schema, with its reader made; raises RegistryError, ReaderError, UnknownSchemaError."""
        with self._changed:
            schema = self._known.get(schema_id)
        if schema is None:
            schema = self._registry.schema(schema_id)
            try:
                self._prepare(schema)
            except RegistryError:
                raise
            except Exception as error:
                logger.exception("The reader of schema %s cannot be made", schema_id)
                message = f"the reader cannot be made: {type(error).__name__}: {error}"
                raise ReaderError(message) from error
            with self._changed:
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
            self._note_absent(schema_id, not_registered(schema_id), error)
        except ReaderError as error:
            tries = self._failed_tries(schema_id)
            if tries < MOST_TRIES:
                return str(error)
            self._note_absent(schema_id, f"schema {schema_id}, tried {tries} times: {error}", error)
        except RegistryError as error:
            return str(error)
        except Exception as error:  # a fault in the client must not end the thread
            logger.exception("Schema %s cannot be looked up", schema_id)
            return f"schema {schema_id} cannot be looked up: {type(error).__name__}: {error}"
        else:
            self._tries.pop(schema_id, None)
        return ""

    def _failed_tries(self, schema_id: SchemaId) -> int:
        """Count a reader that could not be made; return how often. An id that was absent has one more try."""
        tries = self._tries[schema_id] = self._tries.pop(schema_id, 0) + 1
        if len(self._tries) > MOST_KNOWN:
            self._tries.popitem(last=False)
        return tries

    def _note_absent(self, schema_id: SchemaId, reason: str, error: RegistryError) -> None:
        with self._changed:
            n_absent = self._absent.add(schema_id, reason)
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
