"""Message types of a .proto text: protoc compiles it, and google.protobuf makes classes of the result."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any, Final

from topics.codecs.flaws import quote
from topics.errors import ReaderError, RegistryError, SchemaError
from topics.registry.registered_schema import RegisteredSchema

MAIN: Final = "streamgrove_schema.proto"
RESULT: Final = "streamgrove_schema.descriptors"
PROTOC_S: Final = 60.0
MOST_NAME: Final = 200
"""Characters of a part of the name of an import."""
PACKAGES: Final = ("google.protobuf", "grpc_tools")


class MessageTypes:
    """The message classes of one .proto text, by their indexes."""

    def __init__(self, schema: RegisteredSchema) -> None:
        """Raise SchemaError if the text is not a .proto file.

        Raise RegistryError without the packages, ReaderError if the text cannot be compiled now: without
        time, memory or room on the disk, or because protoc crashes.
        """
        _check_packages()
        from google.protobuf import descriptor_pb2, descriptor_pool

        files = descriptor_pb2.FileDescriptorSet.FromString(_compiled(schema))
        pool = descriptor_pool.DescriptorPool()
        try:
            for file in files.file:
                pool.Add(file)
        except TypeError as error:  # a rule that the library has, and protoc has not
            first = str(error).partition("\n")[0]
            message = f"the schema is not a .proto file: {first}"
            raise SchemaError(message) from error
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
    texts = _texts(schema)
    try:
        with tempfile.TemporaryDirectory(prefix="grove-protobuf-") as scratch:
            folder = Path(scratch)
            for name, text in texts.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(text)
            # The library's own files come first: timestamps and wrappers are those that the reader knows.
            command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{included}", f"-I{folder}"]
            protoc = subprocess.run(
                [*command, "--include_imports", f"--descriptor_set_out={folder / RESULT}", MAIN],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=PROTOC_S,
            )
            if protoc.returncode == 0:
                return (folder / RESULT).read_bytes()
            raise _failure(protoc, folder, texts)
    except subprocess.TimeoutExpired:
        message = f"protoc has not compiled schema {schema.id} within {PROTOC_S:g} s"
        raise ReaderError(message) from None
    except OSError as error:
        message = f"schema {schema.id} cannot be compiled here: {error}"
        raise ReaderError(message) from error


def _texts(schema: RegisteredSchema) -> dict[str, bytes]:
    """Return the files of a schema by their names. Raise SchemaError for names that no folder can hold."""
    texts = {}
    for name, text in [
        *((reference.name, reference.text) for reference in schema.references),
        (MAIN, schema.text),
    ]:
        place = PurePosixPath(name)
        parts = place.parts
        is_good = bool(parts) and not place.is_absolute() and ".." not in parts and name.isprintable()
        if not is_good or RESULT in parts or any(len(part.encode()) > MOST_NAME for part in parts):
            message = f"the import {quote(name)} must be a path below the schema; rename the reference"
            raise SchemaError(message)
        try:
            texts[str(place)] = text.encode()
        except UnicodeEncodeError:
            message = "the schema must be UTF-8; write it again"
            raise SchemaError(message) from None
    for name in texts:
        for folder in PurePosixPath(name).parents:
            if str(folder) in texts:
                message = f"the import {quote(str(folder))} must not be a folder of {quote(name)}; rename it"
                raise SchemaError(message)
    return texts


def _failure(
    protoc: subprocess.CompletedProcess[str], folder: Path, names: Iterable[str]
) -> SchemaError | ReaderError:
    """Return the error of a compilation: of the schema if protoc names one of its files."""
    lines = protoc.stderr.replace(f"{folder}/", "").splitlines()
    first = next((line for line in lines if line.startswith(tuple(f"{name}:" for name in names))), None)
    if protoc.returncode == 1 and first is not None:
        return SchemaError(f"the schema is not a .proto file: {first.replace(f'{MAIN}:', 'line ')}")
    reason = next(iter(lines), "no reason given")
    return ReaderError(f"protoc ends with code {protoc.returncode} and without a result: {reason}")
