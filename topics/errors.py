"""Exceptions of topics, and the reasons of dead letters.

    TopicsError
    ├── CodecError       columns that a format cannot carry (a mistake of the caller, never of a record)
    ├── SchemaError      a writer schema that is not valid
    ├── DatasetError     a data set file that cannot be read; names file and line
    ├── CatalogueError   topics that are missing or differ from the catalogue
    ├── RegistryError    a schema registry that does not answer now, or refuses; names its address
    │   └── UnknownSchemaError  a schema that the registry does not have
    └── BrokerError      a broker that cannot be reached or refuses; names the address
        ├── DeliveryError    records that were produced but not delivered
        ├── HungError        a client that does not return from a call
        ├── TokenError       a token for the sign-in that cannot be had now
        │   └── TokenRefusedError  a token that the issuer refuses
        └── AbortedError     a transaction that cannot be committed; after `abort` a new one can begin
            └── FencedError      the broker has fenced the producer

A bad record on a topic is not an exception. It becomes a `Malformed` with one of the reasons below, and the
other records of its batch are processed.
"""

from __future__ import annotations

from enum import StrEnum


class TopicsError(Exception):
    """Base of every exception raised on purpose by `topics`."""


class CodecError(TopicsError):
    """Columns that the chosen wire format cannot carry."""


class SchemaError(TopicsError):
    """A writer schema that is not valid; the message has the rule."""


class DatasetError(TopicsError):
    """A data set that cannot be read: the message begins with `file:line:` where both are known."""

    def __init__(self, message: str, path: str | None = None, line: int | None = None) -> None:
        """Prefix `message` with the file and line."""
        self.path = path
        self.line = line
        place = ":".join(str(part) for part in (path, line) if part is not None)
        super().__init__(f"{place}: {message}" if place else message)


class CatalogueError(TopicsError):
    """Topics that are missing or differ from the catalogue."""


class RegistryError(TopicsError):
    """A schema registry that does not answer now, or refuses a request; never shows a secret."""


class UnknownSchemaError(RegistryError):
    """A schema that the registry does not have: the same request will hardly succeed."""


class ReaderError(RegistryError):
    """The reader of a schema cannot be made on this machine; a later attempt may succeed."""


class BrokerError(TopicsError):
    """A broker that cannot be reached in time or refuses a request: the message names its address."""


class UnansweredError(BrokerError):
    """No broker has answered in time; another attempt may get an answer."""


class DeliveryError(BrokerError):
    """Records that the broker did not accept: the message has their number and the first reason."""


class HungError(BrokerError):
    """A client that has not returned from a call long after the time limit of the call: it never will."""


class TokenError(BrokerError):
    """A token for the sign-in that cannot be had now; the message names its place, and never a secret."""


class TokenRefusedError(TokenError):
    """A token that the issuer refuses to this client; the same request will hardly succeed."""


class AbortedError(BrokerError):
    """A transaction that has to be aborted: none of it took effect, and a new one may begin."""


class FencedError(AbortedError):
    """A producer whose transaction the broker has ended: it took too long, or another producer has its id."""


class Reason(StrEnum):
    """Why a record (or a row of a block) is a dead letter. The slugs are public: their meaning never changes.

    Codecs give the reasons of the first group. The task, which has the models and schemas, gives those of the
    second group; the last of these occur when an answer is encoded, and when a batch of records is read.
    """

    MISSING_KEY = "missing-key"
    BAD_KEY = "bad-key"
    NULL_VALUE = "null-value"
    TOO_LARGE = "too-large"
    TOO_LONG = "too-long"
    UNKNOWN_CONTENT_TYPE = "unknown-content-type"
    NOT_JSON = "not-json"
    BAD_HEADER = "bad-header"
    WRONG_LENGTH = "wrong-length"
    WRONG_TYPE = "wrong-type"
    MISSING_FIELD = "missing-field"
    NOT_FINITE = "not-finite"
    BAD_WEIGHT = "bad-weight"
    BAD_BLOCK = "bad-block"
    TOO_MANY_ROWS = "too-many-rows"
    TOO_MANY_FEATURES = "too-many-features"
    BAD_ROWS = "bad-rows"
    UNKNOWN_COMMAND = "unknown-command"
    UNKNOWN_SCHEMA = "unknown-schema"
    BAD_VALUE = "bad-value"

    WRONG_SCHEMA = "wrong-schema"
    TOO_MANY_CLASSES = "too-many-classes"
    TOO_MANY_MODELS = "too-many-models"
    UNKNOWN_MODEL = "unknown-model"
    BAD_CONTROL = "bad-control"
    NOT_ASKED = "not-asked"
    PROCESSING_ERROR = "processing-error"
    SKIPPED = "skipped"
    BATCH_TOO_LARGE = "batch-too-large"
    BAD_BATCH = "bad-batch"
    OUTPUT_TOO_LARGE = "output-too-large"
