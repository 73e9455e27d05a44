"""Message types of a .proto text: protoc compiles it, and google.protobuf makes classes of the result."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any, Final

from topics.errors import RegistryError, SchemaError
from topics.registry.registered_schema import RegisteredSchema

MAIN: Final = "streamgrove_schema.proto"
PROTOC_S: Final = 60.0
PACKAGES: Final = ("google.protobuf", "grpc_tools")


class MessageTypes:
    """The message classes of one .proto text, by their indexes."""

    def __init__(self, schema: RegisteredSchema) -> None:
        """Raise SchemaError if the text is not a .proto file, RegistryError without the packages for it."""
        _check_packages()
        from google.protobuf import descriptor_pb2, descriptor_pool

        files = descriptor_pb2.FileDescriptorSet.FromString(_compiled(schema))
        pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            pool.Add(file)
        self._names = [
            f"{files.file[-1].package}.{message.name}".lstrip(".") for message in files.file[-1].message_type
        ]
        self._pool = pool
        self._classes: dict[tuple[int, ...], Any] = {}

    def message_class(self, indexes: Sequence[int]) -> Any:
        """Return the class of a message; each index after the first is of a message inside the previous one.

        LookupError if there is none.
        """
        key = tuple(indexes)
        if key not in self._classes:
            from google.protobuf import message_factory

            first, *rest = key
            if min(key) < 0:
                raise LookupError
            descriptor = self._pool.FindMessageTypeByName(self._names[first])
            for index in rest:
                descriptor = descriptor.nested_types[index]
            self._classes[key] = message_factory.GetMessageClass(descriptor)
        return self._classes[key]


def _check_packages() -> None:
    for name in PACKAGES:
        if find_spec(name.partition(".")[0]) is None:
            message = f"a schema of Protobuf needs the package {name}; install streamgrove[protobuf]"
            raise RegistryError(message)


def _compiled(schema: RegisteredSchema) -> bytes:
    """Return the compiled text with all files that it imports, as a FileDescriptorSet, itself at the end."""
    import grpc_tools

    included = Path(grpc_tools.__file__).parent / "_proto"
    with tempfile.TemporaryDirectory(prefix="grove-protobuf-") as scratch:
        folder = Path(scratch)
        for reference in schema.references:
            place = PurePosixPath(reference.name)
            if place.is_absolute() or ".." in place.parts or not place.name:
                message = (
                    f"the import {reference.name!r} must be a path below the schema; rename the reference"
                )
                raise SchemaError(message)
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_text(reference.text, encoding="utf-8")
        (folder / MAIN).write_text(schema.text, encoding="utf-8")
        result = folder / "result"
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"-I{included}"]
        protoc = subprocess.run(
            [*command, "--include_imports", f"--descriptor_set_out={result}", MAIN],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROTOC_S,
        )
        if protoc.returncode or not result.exists():
            first = next(iter(protoc.stderr.replace(str(folder), "").splitlines()), "no reason given")
            message = f"the schema is not a .proto file: {first.replace(f'{MAIN}:', 'line ')}"
            raise SchemaError(message)
        return result.read_bytes()
