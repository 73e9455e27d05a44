"""List units: small items that change together, in chunks of bounded size.

    awaited    specs of keys whose first instance will make the model
    closings   requests that have ended, reported to their models at the next tick
    early      labels held back until their instance comes, with their records
    import     parts of imports that are not finished, a unit for each

A list that has not changed since the last finished cut is not written again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from core.spec import Spec
from core.state_version import STATE_VERSION
from streamapp.task.effects.effects import Origin
from streamapp.task.models.importing import Incoming
from streamapp.task.pending.early_labels import HeldLabel
from streamapp.task.pending.entries import Name
from streamapp.task.unit import Unit, UnitName, damaged, seal, unseal

AWAITED: Final = "awaited"
CLOSINGS: Final = "closings"
EARLY: Final = "early"
IMPORT: Final = "import"
LISTS: Final = (AWAITED, CLOSINGS, EARLY, IMPORT)

BEFORE_IT_WAS_SAID: Final = 4
"""State version of awaited specs in units that do not name it."""

CHUNK_ITEMS: Final = 1024
CHUNK_BYTES: Final = 256 << 10

Closings = Mapping[tuple[str, int], int]  # (model key, how they ended) -> requests


def write_awaited(specs: Mapping[str, Spec]) -> Iterator[Unit]:
    """Yield the units of awaited specs."""
    items = [(key, spec.to_json()) for key, spec in sorted(specs.items())]
    for number, chunk in enumerate(_chunks(items)):
        yield seal(UnitName(AWAITED, str(number)), {"specs": chunk, "state_version": STATE_VERSION})


def read_awaited(units: Sequence[Unit]) -> dict[str, Spec]:
    """Return the specs in units, given in their order."""
    found: dict[str, Spec] = {}
    for unit in units:
        facts, _ = unseal(unit)
        version = int(facts.get("state_version", BEFORE_IT_WAS_SAID))
        found |= {key: Spec.parse(text, version) for key, text in facts["specs"]}
    return found


def write_closings(closings: Closings) -> Iterator[Unit]:
    """Yield the units of requests that have ended."""
    items = [(key, how, n) for (key, how), n in sorted(closings.items())]
    for number, chunk in enumerate(_chunks(items)):
        yield seal(UnitName(CLOSINGS, str(number)), {"closings": chunk})


def read_closings(units: Sequence[Unit]) -> dict[tuple[str, int], int]:
    """Return the ended requests in units."""
    return {(key, how): n for unit in units for key, how, n in unseal(unit)[0]["closings"]}


def write_early(held: Mapping[Name, HeldLabel]) -> Iterator[Unit]:
    """Yield the units of early labels; those of one record stay together, with one copy of it."""
    chunk: list[tuple[Name, HeldLabel]] = []
    number = size = 0
    last: Origin | None = None
    for item in held.items():
        origin = item[1].origin
        same = last is not None and origin[:3] == last[:3]
        if not same and (len(chunk) >= CHUNK_ITEMS or size >= CHUNK_BYTES):
            yield _early_unit(number, chunk)
            chunk, size, number = [], 0, number + 1
        size += 0 if same else len(origin.value or b"")
        chunk.append(item)
        last = origin
    if chunk:
        yield _early_unit(number, chunk)


def _early_unit(number: int, chunk: Sequence[tuple[Name, HeldLabel]]) -> Unit:
    labels: list[Any] = []
    records: list[Any] = []
    body: list[bytes] = []
    place: dict[tuple[Any, ...], int] = {}
    for (key, instance), held in chunk:
        origin = held.origin
        if origin[:3] not in place:
            place[origin[:3]] = len(records)
            headers = [[header, _lay(value, body)] for header, value in origin.headers]
            sizes = [_lay(origin.key, body), _lay(origin.value, body)]
            records.append([*origin[:4], headers, *sizes])
        known = [held.label, held.weight, held.born, held.block_row, held.value_bytes, held.released]
        labels.append([key, instance, place[origin[:3]], *known])
    return seal(UnitName(EARLY, str(number)), {"labels": labels, "records": records}, body)


def _lay(value: bytes | None, body: list[bytes]) -> int | None:
    """Lay bytes into the body and return how many; None: there are none."""
    if value is None:
        return None
    body.append(value)
    return len(value)


def read_early(units: Sequence[Unit]) -> dict[Name, HeldLabel]:
    """Return the early labels in units, given in their order."""
    found: dict[Name, HeldLabel] = {}
    for unit in units:
        facts, body = unseal(unit)
        origins = _origins(unit.name, facts["records"], body)
        for key, instance, record, label, weight, born, block_row, value_bytes, released in facts["labels"]:
            found[key, instance] = HeldLabel(
                label, weight, born, origins[record], block_row, value_bytes, released
            )
    return found


def write_imports(held: Mapping[str, Incoming]) -> Iterator[Unit]:
    """Yield the parts of unfinished imports, oldest import first."""
    number = 0
    for key, incoming in held.items():
        for piece in incoming.pieces:
            facts = {"model": key, "id": incoming.id, "parts": incoming.parts}
            yield seal(UnitName(IMPORT, str(number)), facts, [piece])
            number += 1


def read_imports(units: Sequence[Unit]) -> dict[str, Incoming]:
    """Return the unfinished imports in units, given in their order."""
    found: dict[str, Incoming] = {}
    for unit in units:
        facts, body = unseal(unit)
        key = facts["model"]
        before = found[key].pieces if key in found else ()
        found[key] = Incoming(facts["id"], facts["parts"], (*before, bytes(body)))
    return found


def _origins(name: UnitName, records: Sequence[Any], body: memoryview) -> list[Origin]:
    at = 0

    def take(size: int | None) -> bytes | None:
        nonlocal at
        if size is None:
            return None
        at += size
        return bytes(body[at - size : at])

    found = []
    for topic, partition, offset, timestamp, headers, key, value in records:
        given = tuple((header, take(size)) for header, size in headers)
        found.append(Origin(topic, partition, offset, timestamp, take(key), take(value), given))
    if at != len(body):
        raise damaged(name, "its records must fill its body")
    return found


def _chunks(items: Sequence[tuple[Any, ...]]) -> Iterator[Sequence[tuple[Any, ...]]]:
    """Yield the items in parts, cut once there are enough or their texts are long enough."""
    start = size = 0
    for number, item in enumerate(items):
        if number - start >= CHUNK_ITEMS or size >= CHUNK_BYTES:
            yield items[start:number]
            start, size = number, 0
        size += sum(len(part) for part in item if isinstance(part, str))
    if start < len(items):
        yield items[start:]
