"""Model sources: a model as a file, from an installation or a folder."""

from pathlib import Path
from typing import TYPE_CHECKING

from streamapp.errors import UsageError

if TYPE_CHECKING:
    from streamapp.tools.offline.installation import Installation
    from streamapp.worker.task.models.files.exported import ExportedModel


def taken_from(place: "Installation", key: str) -> bytes:
    """The file of a key's model at the committed offsets."""
    from streamapp.tools.offline.errors import OfflineError
    from streamapp.tools.offline.listing import exported

    number = place.partition_of(key)
    with place.partition(number) as stored:
        arrived = stored.now()
    if arrived is None:
        message = (
            f"partition {number}: the model of {key!r} is not there: nothing was processed of this partition "
            "yet; 'grove models list' shows all models"
        )
        raise OfflineError(message)
    return exported(arrived, key, place.names.prefix)


def read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}; name a file that 'grove models export' wrote"
        raise UsageError(message) from None


def write_file(path: Path, data: bytes) -> None:
    from core.model.file import write_whole

    try:
        write_whole(path, data)
    except OSError as error:
        message = f"cannot write {path}: {error.strerror}; choose another --to"
        raise UsageError(message) from None


def checked(path: Path, data: bytes) -> "ExportedModel":
    from core.errors import GroveError
    from streamapp.worker.task.models.files.exported import read_exported

    try:
        return read_exported(data)
    except GroveError as error:
        message = f"{path}: {error}; name a file that 'grove models export' wrote"
        raise UsageError(message) from None
