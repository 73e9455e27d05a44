"""Encoder: effects to records in input order, with values, keys, timestamps and headers; no Kafka here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from streamapp.worker.outputs.dead_letters import dead_letters
from streamapp.worker.outputs.headers import FullHeaders, OwnHeaders, all_passed_on
from streamapp.worker.outputs.limits import OUTPUT_BYTES, RECORD_BYTES, OutputLimits, headers_bytes
from streamapp.worker.outputs.outgoing import OutputRecords, in_input_order
from streamapp.worker.outputs.plain_answers import plain_answers
from streamapp.worker.outputs.too_large import PREDICTION, TooLarge
from streamapp.worker.task.effects.effects import Effects, FeatureRequests, PredictionGroup, Requests
from topics.codecs import (
    encode_drift_alerts,
    encode_evaluations,
    encode_feature_requests,
    encode_model_events,
    unwritable_predictions,
)
from topics.codecs.compiled.encode import encode_answers
from topics.codecs.compiled.encode_requests import encode_requests
from topics.codecs.compiled.keys import code_headers
from topics.codecs.compiled.text_columns import numbered, text_spans
from topics.codecs.content_types import (
    Wire,
    content_type,
    uniform_wire,
    wire_of_content_type,
    wire_of_value,
)
from topics.columns.header_columns import HeaderColumns
from topics.columns.records import Format, Ints64, Predictions, RawRecords
from topics.columns.spans import Spans, any_headers, distinct_headers
from topics.definitions import TopicNames

if TYPE_CHECKING:
    from streamapp.settings import Settings

Report = TypeVar("Report")


class Encoder:
    """Turns the effects of runs into records that fit their topics."""

    def __init__(
        self,
        names: TopicNames,
        *,
        application_id: str = "streamgrove",
        headers: Literal["minimal", "full"] = "minimal",
        form: Literal["json", "packed"] | None = None,
        limits: OutputLimits | None = None,
        most_bytes: int = OUTPUT_BYTES,
    ) -> None:
        """`form`: of the answers to single records; None: the form of the record answered.

        `limits`: None: those in the catalogue; `most_bytes`: of an output about a small record.
        """
        self._names = names
        self._limits = limits or OutputLimits.of_catalogue(names)
        self._most = most_bytes
        self._form = form
        self._full = FullHeaders(application_id) if headers == "full" else None

    @staticmethod
    def from_settings(settings: Settings, names: TopicNames, limits: OutputLimits) -> Encoder:
        """Return an encoder with the options that the settings hold."""
        return Encoder(
            names,
            application_id=settings.application_id,
            headers=settings.output_headers,
            form=settings.output_format,
            limits=limits,
            most_bytes=settings.max_output_bytes,
        )

    def encode(self, raw: RawRecords, effects: Effects) -> list[OutputRecords]:
        """Return the records that a run leads to, topic by topic; topics without any are left out.

        Outputs too large for their topic are replaced by dead letters of their inputs, which are added to
        `effects` with their counts.
        """
        names, too_large = self._names, TooLarge(raw, self._limits, effects, self._most)
        alerts = [(each.record, each.key, each.alert) for each in effects.alerts]
        evaluations = [(each.record, each.key, each.evaluation) for each in effects.evaluations]
        happened = [(each.record, each.key, each.event) for each in effects.happened]
        found = [
            self._predictions(raw, effects.answers, too_large),
            *(self._requests(raw, each) for each in effects.requests),
            *(self._feature_requests(raw, each) for each in effects.feature_requests),
            self._reports(raw, names.drift_alerts, "drift-alert", alerts, encode_drift_alerts),
            self._reports(raw, names.model_events, "model-event", happened, encode_model_events),
            self._reports(raw, names.evaluations, "evaluation", evaluations, encode_evaluations),
        ]
        fitting = [too_large.without(each) for each in found if each is not None]
        too_large.write(effects)
        if effects.dead_letters:
            limit = self._limits.of(names.dead_letters)
            fitting.append(dead_letters(names.dead_letters, effects.dead_letters, limit))
        return [each for each in fitting if len(each)]

    def encode_together(self, some: Sequence[tuple[RawRecords, Effects]]) -> list[list[OutputRecords] | None]:
        """Return the records that each of several runs of JSON leads to; None: use `encode` for this run."""
        if self._full is not None or self._form == "packed":
            return [None] * len(some)
        topic = self._names.predictions
        found = plain_answers(some, topic, min(self._most, self._limits.of(topic)))
        return [None if records is None else [records] for records in found]

    # -- predictions ----------------------------------------------------------------------------------------

    def _predictions(
        self, raw: RawRecords, answers: Sequence[PredictionGroup], too_large: TooLarge
    ) -> OutputRecords | None:
        """Return all predictions, in the order of the records they answer."""
        parts = [
            self._answers(raw, _writable(part, form, too_large), form)
            for part, form in self._by_form(raw, answers)
        ]
        return in_input_order(parts) if parts else None

    def _by_form(
        self, raw: RawRecords, answers: Sequence[PredictionGroup]
    ) -> list[tuple[PredictionGroup, Format]]:
        """Return the answers by the format they are to be written in."""
        found: list[tuple[PredictionGroup, Format]] = []
        fixed = [self._fixed_form(each) for each in answers]
        wire = uniform_wire(raw.values, raw.headers) if None in fixed else None
        for each, form in zip(answers, fixed, strict=True):
            if form is not None or wire is not None:
                found.append((each, form or _form(wire or "json")))
                continue
            forms = [_form(_wire(raw, record)) for record in each.record.tolist()]
            found += [
                (_taken(each, [at for at, mine in enumerate(forms) if mine == one]), one)
                for one in dict.fromkeys(forms)
            ]
        return found

    def _fixed_form(self, answers: PredictionGroup) -> Format | None:
        """Return the format of answers if it is the same for all; None: each has the format of its record."""
        if answers.block:
            return "arrow"
        if answers.predictions.acquired is not None:  # only JSON can hold which features were bought
            return "json"
        return self._form

    def _answers(self, raw: RawRecords, answers: PredictionGroup, form: Format) -> OutputRecords:
        predictions, topic = answers.predictions, self._names.predictions
        records = answers.record[:1] if answers.block else answers.record
        values = encode_answers(predictions, form)
        keys = None if answers.key is None else [answers.key] * len(records)
        own: OwnHeaders = {}
        if self._full is not None:
            versions = predictions.version.max(keepdims=True) if answers.block else predictions.version
            own = {"grove-model-version": numbered(b"", versions)}
            if not answers.block:
                own = {"grove-instance-id": text_spans(predictions.ids), **own}
        return self._records(raw, topic, "prediction", records, values, form, own, keys)

    # -- other topics ---------------------------------------------------------------------------------------

    def _requests(self, raw: RawRecords, requests: Requests) -> OutputRecords:
        asked = requests.requests
        own: OwnHeaders = {}
        if self._full is not None:
            own = {
                "grove-request-id": text_spans(asked.request_ids),
                "grove-instance-id": text_spans(asked.instance_ids),
                "grove-strategy": text_spans(asked.strategies),
            }
        records, topic = requests.record, self._names.label_requests
        keys = None if requests.key is None else [requests.key] * len(records)
        values = encode_requests(asked)
        return self._records(raw, topic, "label-request", records, values, "json", own, keys)

    def _feature_requests(self, raw: RawRecords, requests: FeatureRequests) -> OutputRecords:
        own: OwnHeaders = {}
        if self._full is not None:
            own = {
                "grove-request-id": text_spans([each.request_id for each in requests.requests]),
                "grove-instance-id": text_spans([each.instance_id for each in requests.requests]),
            }
        n, topic = len(requests.requests), self._names.feature_requests
        records, keys = [requests.record] * n, [requests.key] * n
        values = encode_feature_requests(requests.requests)
        return self._records(raw, topic, "feature-request", records, values, "json", own, keys)

    def _reports(
        self,
        raw: RawRecords,
        topic: str,
        kind: str,
        reports: Sequence[tuple[int, bytes | None, Report]],
        encode: Callable[[Iterable[Report]], list[bytes]],
    ) -> OutputRecords | None:
        """Return the records of reports: (record, model key, report)."""
        if not reports:
            return None
        records, keys, values = zip(*reports, strict=True)
        return self._records(raw, topic, kind, records, encode(values), keys=keys)

    def _records(
        self,
        raw: RawRecords,
        topic: str,
        kind: str,
        records: npt.ArrayLike,
        values: Sequence[bytes | None],
        form: Format = "json",
        own: OwnHeaders | None = None,
        keys: Sequence[bytes | None] | None = None,
    ) -> OutputRecords:
        """Return records about `records` of the run.

        `own`: headers that only this kind has; `keys`: one for each record, if another model's record led to
        it; None: the key of the record it is about.
        """
        about = np.asarray(records, dtype=np.int64)
        n = len(raw)
        is_every = len(about) == n and np.count_nonzero(about == np.arange(n)) == n
        inputs = raw if is_every else raw.chosen(about)
        keys_of = Spans.of(inputs.keys)
        if keys is not None:
            keys_of = Spans.of([mine or key for mine, key in zip(keys, keys_of, strict=True)])
        column = Spans.of(values)
        headers: HeaderColumns | None = None
        most_bytes = RECORD_BYTES + column.longest + keys_of.longest
        any_given = any_headers(inputs.headers)
        if any_given:
            code_headers(inputs.headers)
            most_bytes += max(map(headers_bytes, distinct_headers(inputs.headers)))
        times = inputs.spans.timestamps
        if self._full is not None:
            events = _events(f"{kind}-{raw.topic}-{raw.partition}", inputs.spans.offsets.array)
            headers = self._full.of(kind, form, events, times.array, keys_of, own or {}, inputs.headers)
            most_bytes += self._full.most_bytes(most_bytes)
        elif any_given:
            headers = all_passed_on(inputs.headers)
        return OutputRecords(topic, kind, column, keys_of, times, headers, about, most_bytes)


def _events(prefix: str, offsets: Ints64) -> Spans:
    """Return a name for each record; several about one input (rows of a block) are numbered.

    The name of a record does not depend on other inputs of its run.
    """
    if len(offsets) < 2 or (np.diff(offsets) > 0).all():
        return numbered(f"{prefix}-".encode(), offsets)
    several = Counter(offsets.tolist())
    times: Counter[int] = Counter()
    names = []
    for offset in offsets.tolist():
        names.append(f"{prefix}-{offset}" + (f"-{times[offset]}" if several[offset] > 1 else ""))
        times[offset] += 1
    return text_spans(names)


def _writable(answers: PredictionGroup, form: Format, too_large: TooLarge) -> PredictionGroup:
    """Return the answers that their format can hold."""
    unwritable = unwritable_predictions(answers.predictions, form)
    if not unwritable:
        return answers
    for row, why in unwritable.items():
        too_large.add(int(answers.record[row]), PREDICTION, why)
    return _taken(answers, [row for row in range(len(answers.record)) if row not in unwritable])


def _wire(raw: RawRecords, record: int) -> Wire:
    """Return the wire format of a record that was decoded."""
    stated = content_type(raw.headers[record])
    wire = None if stated is None else wire_of_content_type(stated)
    return wire or wire_of_value(raw.values[record] or b"")


def _form(wire: Wire) -> Format:
    """Return the format of the answer to a single record; envelopes are JSON."""
    return "packed" if wire == "packed" else "json"


def _taken(answers: PredictionGroup, rows: list[int]) -> PredictionGroup:
    """Return some rows of answers."""
    all_ = answers.predictions
    ids = [all_.ids[row] for row in rows]
    columns = (all_.prediction[rows], all_.probability[rows], all_.version[rows])
    paths = None if all_.explanation is None else [all_.explanation[row] for row in rows]
    bought = None if all_.acquired is None else [all_.acquired[row] for row in rows]
    predictions = Predictions(all_.classes, ids, *columns, paths, bought)
    return PredictionGroup(answers.record[rows], predictions, key=answers.key)
