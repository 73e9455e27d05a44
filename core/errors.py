"""Exceptions of core.

GroveError
├── SpecError               a model spec that cannot be built
│   ├── UnknownPluginError  a plug-in name without a file
│   └── ParameterError      a parameter that is unknown or out of range
├── SchemaError             records and schema do not fit together
│   └── TooManyClassesError a class beyond ``max_classes``
├── SnapshotError           bytes that are no snapshot of this build
└── RowError                an error in a decision in the middle of a run; __cause__ has it
"""

from __future__ import annotations


class GroveError(Exception):
    """Any error that core raises on purpose."""


class SpecError(GroveError):
    """A model spec that cannot be built."""


class UnknownPluginError(SpecError):
    """A plug-in name without a file in its family."""


class ParameterError(SpecError):
    """A parameter that its plug-in does not have, or a value that it refuses."""


class SchemaError(GroveError):
    """Records, codes and schema that do not fit together."""


class TooManyClassesError(SchemaError):
    """A class label beyond the schema's ``max_classes``."""


class RowError(GroveError):
    """An error in a decision at ``row`` of a run, for the model at an index of the table."""

    def __init__(self, row: int, model: int) -> None:
        """Store row and index of the model; ``__cause__`` is the error."""
        super().__init__(f"row {row} of the run, model {model}: a decision failed")
        self.row = row
        self.model = model


class SnapshotError(GroveError):
    """Bytes that are not a snapshot this build can restore."""


class OtherReleaseSnapshotError(SnapshotError):
    """A snapshot whose format, state version or spec only other releases have."""
