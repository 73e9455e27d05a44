"""Errors that a person or an operator is meant to read: one line, what is wrong and what to do.

And what is no error yet, because waiting may end it (`NotYetError`).
"""


class StreamappError(Exception):
    """Something went wrong that is not a bug; `exit_code` is what the command ends with."""

    exit_code = 1


class UsageError(StreamappError):
    """The command line asks for something that does not exist."""

    exit_code = 64


class SettingsError(StreamappError):
    """A setting is missing, unknown or out of its range."""

    exit_code = 78


class DownloadError(StreamappError):
    """A file of the embedded broker could not be fetched or is not what the lock file says."""


class EmbeddedBrokerError(StreamappError):
    """The Kafka broker does not answer, or did not start."""


class NotYetError(Exception):
    """Something is not there yet, a transaction of another worker is open, say; it has to be waited for."""


class ChangelogError(StreamappError):
    """A changelog that is not the one whose beginning this worker has on disk."""

    def __init__(self, reason: str, directory: str) -> None:
        """`reason`: names topic, partition and offsets; `directory`: where the worker's copy is."""
        super().__init__(
            f"{reason}: it was made anew, or truncated; while the worker is stopped delete {directory}, its "
            "copy of it, and start it again: it then reads all that the topic has"
        )
