"""Errors whose text is for a person: one line with the problem and the remedy.

`NotYetError` is not an error yet, because waiting may end it.
"""


class StreamappError(Exception):
    """An error that is not a bug; `exit_code` is the exit code of the command."""

    exit_code = 1


class UsageError(StreamappError):
    """The command line names something that does not exist."""

    exit_code = 64


class SettingsError(StreamappError):
    """A setting is missing, unknown or out of its range."""

    exit_code = 78


class DownloadError(StreamappError):
    """A file of the embedded broker could not be downloaded or does not match the lock file."""


class EmbeddedBrokerError(StreamappError):
    """The Kafka broker does not answer, or did not start."""


class EmbeddedRegistryError(StreamappError):
    """The schema registry of `grove registry` ended, or did not start."""


class OtherReleaseError(StreamappError):
    """State of a partition that another release wrote and this release cannot read; nothing is damaged."""


class NotYetError(Exception):
    """A condition that waiting may end, such as an open transaction of another worker."""


class StateDirectoryError(StreamappError):
    """The disk of `state.dir` takes nothing at the moment: it is full, read-only or broken."""


class LocalCopyError(StreamappError):
    """The copy of the snapshot table in `state.dir` cannot be read or written."""


class ChangelogError(StreamappError):
    """A changelog with another beginning than the worker's copy on disk."""

    def __init__(self, reason: str, directory: str) -> None:
        """`reason`: names topic, partition and offsets; `directory`: where the worker's copy is."""
        super().__init__(
            f"{reason}: it was created again, or truncated; stop the worker, delete {directory}, its "
            "copy of it, and start the worker again: it then reads the whole topic"
        )
