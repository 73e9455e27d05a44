"""Encoder: effects to records in input order, with values, keys, timestamps and headers; no Kafka here."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from streamapp.worker.outputs.dead_letters import dead_letters
from streamapp.worker.outputs.joined_answers import joined_answers
from streamapp.worker.outputs.outgoing import OutputRecords, in_input_order
from streamapp.worker.outputs.outgoing_headers import FullHeaders, OutputForm, OwnHeaders, all_passed_on
from streamapp.worker.outputs.record_sizes import OUTPUT_BYTES, RECORD_BYTES, OutputLimits, headers_bytes
from streamapp.worker.outputs.round_outputs import RoundOutputs, round_outputs
from streamapp.worker.outputs.schema_registration import SchemaIds
from streamapp.worker.outputs.too_large import PREDICTION, TooLarge
from streamapp.worker.task.effects.effects import Effects, FeatureRequests, PredictionGroup, Requests
from topics.codecs import (
    encode_drift_alerts,
    encode_evaluations,
    encode_feature_requests,
    encode_model_events,
    unwritable_predictions,
)
from topics.codecs.avro.output_schemas import OUTPUTS, Output
from topics.codecs.compiled.encode import encode_answers
from topics.codecs.compiled.encode_avro import avro_answers, avro_reports, avro_requests
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
from topics.codecs.frames.schema_ids import are_before_bodies, schema_id
from topics.columns.header_columns import HeaderColumns
from topics.columns.members import given
from topics.columns.records import Ints64, RawRecords
from topics.columns.row_cuts import taken
from topics.columns.spans import Spans, any_headers, distinct_headers
from topics.definitions import TopicNames

if TYPE_CHECKING:
    from streamapp.settings import Settings
    from streamapp.worker.task.rounds.round_answers import RoundAnswers

logger = logging.getLogger(__name__)

Report = TypeVar("Report")

Check = Callable[[RawRecords, Effects], None]
"""A function that raises an exception if the records of a run cannot be committed."""


def _no_check(_raw: RawRecords, _effects: Effects) -> None:
    """Accept every run."""


class Encoder:
    """Turns the effects of runs into records that fit their topics."""

    def __init__(
        self,
        names: TopicNames,
        *,
        application_id: str = "streamgrove",
        headers: Literal["minimal", "full"] = "minimal",
        form: Literal["json", "packed"] | None = None,
        schema_ids: SchemaIds | None = None,
        limits: OutputLimits | None = None,
        most_bytes: int = OUTPUT_BYTES,
        check: Check = _no_check,
    ) -> None:
        """`form`: format of the answers to single records; None: the format of the record that is answered.

        `schema_ids`: ids of the schemas of outputs, which are then written in Avro, except answers to blocks;
        `limits`: largest records by topic, None: those of the catalogue; `most_bytes`: of an output about a
        small record; `check`: called for each run before its outputs are written.
        """
        self._names = names
        self._limits = limits or OutputLimits.of_catalogue(names)
        self._most = most_bytes
        self._form = form
        self._schema_ids = schema_ids
        self._check = check
        self._full = FullHeaders(application_id) if headers == "full" else None

    @staticmethod
    def from_settings(
        settings: Settings,
        names: TopicNames,
        limits: OutputLimits,
        check: Check = _no_check,
        schema_ids: SchemaIds | None = None,
    ) -> Encoder:
        """Return an encoder with the options that the settings hold; `schema_ids`: for outputs in Avro."""
        return Encoder(
            names,
            application_id=settings.application_id,
            headers=settings.output_headers,
            form=None if settings.output_format == "avro" else settings.output_format,
            schema_ids=schema_ids,
            limits=limits,
            most_bytes=settings.max_output_bytes,
            check=check,
        )

    def encode_runs(
        self, runs: Sequence[tuple[RawRecords, Effects]]
    ) -> list[list[OutputRecords] | Exception]:
        """Return the records that each run leads to, or the exception that concerns this run only.

        Answers of small runs are written in one call.
        """
        answers = self._joined_answers(runs)
        outcomes: list[list[OutputRecords] | Exception] = []
        for (raw, effects), written in zip(runs, answers, strict=True):
            try:
                self._check(raw, effects)
                outcomes.append(self.encode(raw, effects, written))
            except Exception as error:  # noqa: BLE001 - the caller isolates the record
                outcomes.append(error)
        return outcomes

    def encode_round(self, answers: RoundAnswers) -> RoundOutputs | None:
        """Return the records of answers that are alike; None: the runs have to be encoded one by one."""
        if self._full is not None or self._form == "packed" or answers.spans.header_bytes:
            return None
        topic = self._names.predictions
        outputs = round_outputs(answers, topic, self._schema_id("prediction"))
        return outputs if outputs.records.most_bytes <= min(self._limits.of(topic), self._most) else None

    def encode(
        self, raw: RawRecords, effects: Effects, answers: OutputRecords | None = None
    ) -> list[OutputRecords]:
        """Return the records that a run leads to, topic by topic; topics without any are left out.

        Outputs too large for their topic are replaced by dead letters of their inputs, which are added to
        `effects` with their counts. `answers`: the records of its predictions, if they are written already.
        """
        too_large = TooLarge(raw, self._limits, effects, self._most)
        if answers is None:
            answers = self._predictions(raw, effects.answers, too_large)
        outputs = [] if answers is None else [answers]
        outputs += [self._requests(raw, requests) for requests in effects.requests]
        if effects.feature_requests:
            outputs.append(self._feature_requests(raw, effects.feature_requests))
        outputs += self._reports(raw, effects)
        fitting = [too_large.without(records) for records in outputs]
        too_large.write(effects)
        if effects.dead_letters:
            topic = self._names.dead_letters
            fitting.append(dead_letters(topic, effects.dead_letters, self._limits.of(topic)))
        return [records for records in fitting if len(records)]

    def _joined_answers(self, runs: Sequence[tuple[RawRecords, Effects]]) -> Sequence[OutputRecords | None]:
        if len(runs) > 1 and self._full is None and self._form != "packed":
            try:
                return joined_answers(runs, self._names.predictions, self._schema_id("prediction"))
            except Exception:  # encoding each run alone, in isolation, shows which record it is
                logger.exception("answers of %d partitions could not be encoded together", len(runs))
        return [None] * len(runs)

    def _schema_id(self, output: Output) -> int | None:
        """Return the id of the schema of an output; None if it is not written in Avro."""
        return None if self._schema_ids is None else self._schema_ids[output]

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
    ) -> list[tuple[PredictionGroup, OutputForm]]:
        """Return the answers by the format they are to be written in."""
        by_form: list[tuple[PredictionGroup, OutputForm]] = []
        fixed = [self._fixed_form(group) for group in answers]
        may_be_uniform = None in fixed and (raw.schemas is None or are_before_bodies(raw.headers))
        wire = uniform_wire(raw.values, raw.headers) if may_be_uniform else None
        for group, form in zip(answers, fixed, strict=True):
            if form is not None or wire is not None:
                by_form.append((group, form or _form(wire or "json")))
                continue
            forms = [_form(_wire(raw, record)) for record in group.record.tolist()]
            by_form += [
                (_taken(group, [row for row, own in enumerate(forms) if own == written]), written)
                for written in dict.fromkeys(forms)
            ]
        return by_form

    def _fixed_form(self, answers: PredictionGroup) -> OutputForm | None:
        """Return the format of answers if it is the same for all; None: each has the format of its record."""
        if answers.block:
            return "arrow"
        if self._schema_ids is not None:
            return "avro"
        if not all(member.packed for member, _ in given(answers.predictions)):  # only JSON can hold it
            return "json"
        return self._form

    def _answers(self, raw: RawRecords, answers: PredictionGroup, form: OutputForm) -> OutputRecords:
        predictions, topic = answers.predictions, self._names.predictions
        records = answers.record[:1] if answers.block else answers.record
        schema_id = self._schema_id("prediction")
        if form == "avro" and schema_id is not None:
            values = avro_answers(predictions, schema_id)
        else:
            values = encode_answers(predictions, "json" if form == "avro" else form)
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
        schema_id = self._schema_id("label-request")
        form: OutputForm = "json" if schema_id is None else "avro"
        values = encode_requests(asked) if schema_id is None else avro_requests(asked, schema_id)
        return self._records(raw, topic, "label-request", records, values, form, own, keys)

    def _feature_requests(self, raw: RawRecords, asked: Sequence[FeatureRequests]) -> OutputRecords:
        requests = [request for of_record in asked for request in of_record.requests]
        records = [of_record.record for of_record in asked for _ in of_record.requests]
        keys = [of_record.key for of_record in asked for _ in of_record.requests]
        own: OwnHeaders = {}
        if self._full is not None:
            own = {
                "grove-request-id": text_spans([request.request_id for request in requests]),
                "grove-instance-id": text_spans([request.instance_id for request in requests]),
            }
        values, topic = encode_feature_requests(requests), self._names.feature_requests
        return self._records(raw, topic, "feature-request", records, values, "json", own, keys)

    def _reports(self, raw: RawRecords, effects: Effects) -> Iterator[OutputRecords]:
        """Yield the records of alerts, model events and evaluations."""
        names = self._names
        if effects.alerts:
            alerts = [(item.record, item.key, item.alert) for item in effects.alerts]
            yield self._report(raw, names.drift_alerts, "drift-alert", alerts, encode_drift_alerts)
        if effects.happened:
            happened = [(item.record, item.key, item.event) for item in effects.happened]
            yield self._report(raw, names.model_events, "model-event", happened, encode_model_events)
        if effects.evaluations:
            evaluations = [(item.record, item.key, item.evaluation) for item in effects.evaluations]
            yield self._report(raw, names.evaluations, "evaluation", evaluations, encode_evaluations)

    def _report(
        self,
        raw: RawRecords,
        topic: str,
        kind: str,
        reports: Sequence[tuple[int, bytes | None, Report]],
        encode: Callable[[Iterable[Report]], list[bytes]],
    ) -> OutputRecords:
        """Return the records of reports (at least one): record, model key, report."""
        records, keys, contents = zip(*reports, strict=True)
        texts = encode(contents)
        for output in OUTPUTS:
            if output == kind and self._schema_ids is not None:
                values = avro_reports(output, self._schema_ids[output], texts)
                return self._records(raw, topic, kind, records, values, "avro", keys=keys)
        return self._records(raw, topic, kind, records, texts, keys=keys)

    def _records(
        self,
        raw: RawRecords,
        topic: str,
        kind: str,
        records: npt.ArrayLike,
        values: Sequence[bytes | None],
        form: OutputForm = "json",
        own: OwnHeaders | None = None,
        keys: Sequence[bytes | None] | None = None,
    ) -> OutputRecords:
        """Return records about `records` of the run.

        `own`: headers that only this kind has; `keys`: the model key of each record, if its model is not
        that of the record it is about; None: the key of the record it is about.
        """
        about = np.asarray(records, dtype=np.int64)
        n = len(raw)
        is_every = len(about) == n and np.count_nonzero(about == np.arange(n)) == n
        inputs = raw if is_every else raw.chosen(about)
        keys_of = Spans.of(inputs.keys)
        if keys is not None:
            keys_of = Spans.of([own_key or key for own_key, key in zip(keys, keys_of, strict=True)])
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
    """Return an event id for each record; several about one input (rows of a block) are numbered.

    The id of a record does not depend on other inputs of its run.
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


def _writable(answers: PredictionGroup, form: OutputForm, too_large: TooLarge) -> PredictionGroup:
    """Return the answers that their format can hold."""
    unwritable = {} if form == "avro" else unwritable_predictions(answers.predictions, form)
    if not unwritable:
        return answers
    for row, why in unwritable.items():
        too_large.add(int(answers.record[row]), PREDICTION, why)
    return _taken(answers, [row for row in range(len(answers.record)) if row not in unwritable])


def _wire(raw: RawRecords, record: int) -> Wire:
    """Return the wire format of a record that was decoded."""
    if raw.schemas and schema_id(raw.values[record], raw.headers[record]) is not None:
        return "framed"
    stated = content_type(raw.headers[record])
    wire = None if stated is None else wire_of_content_type(stated)
    return wire or wire_of_value(raw.values[record] or b"")


def _form(wire: Wire) -> OutputForm:
    """Return the format of the answer to a single record; envelopes are JSON."""
    return "packed" if wire == "packed" else "json"


def _taken(answers: PredictionGroup, rows: list[int]) -> PredictionGroup:
    """Return some rows of answers."""
    return PredictionGroup(answers.record[rows], taken(answers.predictions, rows), key=answers.key)
