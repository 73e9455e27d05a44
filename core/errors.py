"""Exceptions of core.

GroveError
├── SpecError               a model spec that cannot be built
│   ├── UnknownPluginError  a plug-in name that no file answers to
│   └── ParameterError      a parameter that is unknown or out of range
├── SchemaError             records and schema do not fit together
│   └── TooManyClassesError a class beyond ``max_classes``
├── SnapshotError           bytes that are no snapshot of this build
└── RowError                a decision failed in the middle of a run; the cause is whatever was raised
"""

from __future__ import annotations


class GroveError(Exception):
    """Any error that core raises on purpose."""


class SpecError(GroveError):
    """A model spec that cannot be built."""


class UnknownPluginError(SpecError):
    """A plug-in name that no file of its family answers to."""


class ParameterError(SpecError):
    """A parameter that its plug-in does not know, or whose value it refuses."""


class SchemaError(GroveError):
    """Records, codes and schema that do not fit together."""


class TooManyClassesError(SchemaError):
    """A class label beyond the schema's ``max_classes``."""


class RowError(GroveError):
    """What was raised while a decision was taken at ``row`` of a run, for the model at an index."""

    def __init__(self, row: int, model: int) -> None:
        """Say where; what it was is the cause."""
        super().__init__(f"row {row} of the run, model {model}: a decision failed")
        self.row = row
        self.model = model


class SnapshotError(GroveError):
    """Bytes that are not a snapshot this build can restore."""
