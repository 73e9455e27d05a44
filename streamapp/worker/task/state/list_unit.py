"""List units: small items that change together, in chunks of bounded size.

    awaited    specs of keys whose first instance will make the model
    closings   requests that have ended, reported to their models at the next tick
    episodes   records whose features are being bought
    early      labels held back until their instance comes, with their records
    import     parts of imports that are not finished, a unit for each

A list that has not changed since the last finished cut is not written again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from core.errors import SpecError
from core.spec import Spec
from core.state_version import ALIKE_SINCE
from streamapp.errors import OtherReleaseError
from streamapp.worker.task.effects.effects import Origin
from streamapp.worker.task.episodes.episode import Episode
from streamapp.worker.task.episodes.episode_table import EpisodesImage
from streamapp.worker.task.models.files.importing import Incoming
from streamapp.worker.task.pending.early_labels import HeldLabel
from streamapp.worker.task.pending.name_columns import Name
from streamapp.worker.task.unit import Unit, UnitName, damaged, seal, unseal

AWAITED: Final = "awaited"
CLOSINGS: Final = "closings"
EARLY: Final = "early"
EPISODES: Final = "episodes"
IMPORT: Final = "import"
LISTS: Final = (AWAITED, CLOSINGS, EARLY, EPISODES, IMPORT)

BEFORE_IT_WAS_SAID: Final = 4
"""State version of awaited specs in units that do not name it."""

CHUNK_ITEMS: Final = 1024
CHUNK_BYTES: Final = 256 << 10

Closings = Mapping[tuple[str, int], int]  # (model key, how they ended) -> requests


def write_awaited(specs: Mapping[str, Spec]) -> Iterator[Unit]:
    """Yield the units of awaited specs."""
    items = [(key, spec.to_json()) for key, spec in sorted(specs.items())]
    version = max([spec.state_version for spec in specs.values()], default=ALIKE_SINCE)
    for number, chunk in enumerate(_chunks(items)):
        yield seal(UnitName(AWAITED, str(number)), {"specs": chunk, "state_version": version})


def read_awaited(units: Sequence[Unit]) -> dict[str, Spec]:
    """Return the specs in units, given in their order."""
    specs: dict[str, Spec] = {}
    for unit in units:
        facts, _ = unseal(unit)
        version = int(facts.get("state_version", BEFORE_IT_WAS_SAID))
        try:
            specs |= {key: Spec.parse(text, version) for key, text in facts["specs"]}
        except (SpecError, ValueError) as error:
            message = f"unit {unit.name}: it has a spec that this build cannot build: {error}"
            raise OtherReleaseError(message) from error
    return specs


def write_closings(closings: Closings) -> Iterator[Unit]:
    """Yield the units of requests that have ended."""
    items = [(key, how, n) for (key, how), n in sorted(closings.items())]
    for number, chunk in enumerate(_chunks(items)):
        yield seal(UnitName(CLOSINGS, str(number)), {"closings": chunk})


def read_closings(units: Sequence[Unit]) -> dict[tuple[str, int], int]:
    """Return the ended requests in units."""
    return {(key, how): n for unit in units for key, how, n in unseal(unit)[0]["closings"]}


def write_early(labels: Mapping[Name, HeldLabel]) -> Iterator[Unit]:
    """Yield the units of early labels; the labels of one record stay together, with one copy of it."""
    chunk: list[tuple[Name, HeldLabel]] = []
    number = size = 0
    last: Origin | None = None
    for item in labels.items():
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
    for (key, instance), label in chunk:
        origin = label.origin
        if origin[:3] not in place:
            place[origin[:3]] = len(records)
            headers = [[header, _lay(value, body)] for header, value in origin.headers]
            sizes = [_lay(origin.key, body), _lay(origin.value, body)]
            records.append([*origin[:4], headers, *sizes])
        values = [label.label, label.weight, label.born, label.block_row, label.value_bytes, label.released]
        labels.append([key, instance, place[origin[:3]], *values])
    return seal(UnitName(EARLY, str(number)), {"labels": labels, "records": records}, body)


def _lay(value: bytes | None, body: list[bytes]) -> int | None:
    """Append bytes to the body and return how many; None: the value is null."""
    if value is None:
        return None
    body.append(value)
    return len(value)


def read_early(units: Sequence[Unit]) -> dict[Name, HeldLabel]:
    """Return the early labels in units, given in their order."""
    labels_of: dict[Name, HeldLabel] = {}
    for unit in units:
        facts, body = unseal(unit)
        origins = _origins(unit.name, facts["records"], body)
        for key, instance, record, label, weight, born, block_row, value_bytes, released in facts["labels"]:
            labels_of[key, instance] = HeldLabel(
                label, weight, born, origins[record], block_row, value_bytes, released
            )
    return labels_of


def write_episodes(image: EpisodesImage) -> Iterator[Unit]:
    """Yield the units of open episodes, oldest first; one at least, if there ever was an episode."""
    chunk: list[Episode] = []
    number = size = 0
    for episode in image.episodes:
        if len(chunk) >= CHUNK_ITEMS or size >= CHUNK_BYTES:
            yield _episodes_unit(image.next, number, chunk)
            chunk, size, number = [], 0, number + 1
        size += episode.size
        chunk.append(episode)
    if chunk or image:
        yield _episodes_unit(image.next, number, chunk)


def _episodes_unit(next_serial: int, number: int, chunk: Sequence[Episode]) -> Unit:
    rows: list[Any] = []
    body: list[bytes] = []
    for episode in chunk:
        sizes = [len(episode.x), len(episode.words)]
        numbers = [episode.serial, episode.place, episode.opened, episode.deadline, episode.weight]
        rows.append([*episode.name, *numbers, list(episode.bought), episode.cost, episode.questions, *sizes])
        body += [
            episode.x.astype("<f8").tobytes(),
            episode.status.tobytes(),
            episode.words.astype("<i8").tobytes(),
        ]
    # The number of the next episode is only in the first unit: the rest stay as they are.
    facts = {"episodes": rows} | ({"next": next_serial} if number == 0 else {})
    return seal(UnitName(EPISODES, str(number)), facts, body)


def read_episodes(units: Sequence[Unit]) -> tuple[int, list[Episode]]:
    """Return the number of the next episode and the open episodes in units, given in their order."""
    episodes: list[Episode] = []
    next_serial = 0
    for unit in units:
        facts, body = unseal(unit)
        next_serial = max(next_serial, int(facts.get("next", 0)))
        at = 0
        try:
            for row in facts["episodes"]:
                key, instance, serial, place, opened, deadline, weight, bought, cost, questions, d, w = row
                x = np.frombuffer(body, "<f8", d, at).astype(np.float64)
                status = np.frombuffer(body, np.int8, d, at + 8 * d).copy()
                words = np.frombuffer(body, "<i8", w, at + 9 * d).astype(np.int64)
                at += 9 * d + 8 * w
                episodes.append(
                    Episode(
                        (key, instance),
                        serial,
                        place,
                        opened,
                        deadline,
                        weight,
                        x,
                        status,
                        words,
                        tuple(bought),
                        cost,
                        questions,
                    )
                )
        except (ValueError, TypeError, KeyError) as error:
            raise damaged(unit.name, f"its columns must fit its episodes ({error})") from error
        if at != len(body):
            raise damaged(unit.name, "its episodes must fill its body")
    return next_serial, episodes


def write_imports(imports: Mapping[str, Incoming]) -> Iterator[Unit]:
    """Yield the parts of unfinished imports, oldest import first."""
    number = 0
    for key, incoming in imports.items():
        for piece in incoming.pieces:
            facts = {"model": key, "id": incoming.id, "parts": incoming.parts}
            yield seal(UnitName(IMPORT, str(number)), facts, [piece])
            number += 1


def read_imports(units: Sequence[Unit]) -> dict[str, Incoming]:
    """Return the unfinished imports in units, given in their order."""
    imports: dict[str, Incoming] = {}
    for unit in units:
        facts, body = unseal(unit)
        key = facts["model"]
        before = imports.get(key) or Incoming(facts["id"], facts["parts"])
        imports[key] = before.with_piece(bytes(body))
    return imports


def _origins(name: UnitName, records: Sequence[Any], body: memoryview) -> list[Origin]:
    at = 0

    def take(size: int | None) -> bytes | None:
        nonlocal at
        if size is None:
            return None
        at += size
        return bytes(body[at - size : at])

    origins = []
    for topic, partition, offset, timestamp, headers, key, value in records:
        header_pairs = tuple((header, take(size)) for header, size in headers)
        origins.append(Origin(topic, partition, offset, timestamp, take(key), take(value), header_pairs))
    if at != len(body):
        raise damaged(name, "its records must fill its body")
    return origins


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
