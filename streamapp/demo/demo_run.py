"""Demo run: starts the processes in their order, follows the stream, and ends everything."""

from __future__ import annotations

import contextlib
import math
import os
import re
import secrets
import shutil
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from prometheus_client.parser import text_string_to_metric_families

from core.spec import Spec
from streamapp.demo.demo_models import DemoModel
from streamapp.demo.demo_plan import DemoPlan
from streamapp.demo.demo_schema import schema_of
from streamapp.demo.screen import DemoSummary, Display, FeatureSummary
from streamapp.demo.tally import Truth
from streamapp.demo.topic_progress import DemoCluster
from streamapp.demo.watch import Watch
from streamapp.embedded import EmbeddedBroker
from streamapp.errors import StreamappError, UsageError
from streamapp.lab.datasets import check_attributes, open_data
from streamapp.settings import Settings, load_settings, to_environment
from streamapp.settings.clients import librdkafka_properties, output_reader
from streamapp.worker.child_process import GuardedProcess
from streamapp.worker.compile_ahead import TAKES_SOME, kernels_are_cold, warm_kernels
from streamapp.worker.reserved_ports import free_ports
from topics.clients.admin import create
from topics.clients.partitioner import partition_of
from topics.clients.sender import Sender
from topics.codecs import encode_controls
from topics.definitions import TopicNames
from topics.patience import Patience
from topics.readers import FileDataset
from topics.readers.form_inference import inference_lines

PARTITIONS = 8
# Labels between two evaluations; with pages a person wants to see the first one soon.
EVERY, WATCHED_EVERY = 1_000, 100
# Rows that the replay may be ahead of the labels: about twice the rows in flight on a machine that keeps up.
MAX_OUTSTANDING = 1_500
FEATURES_MAX_OUTSTANDING = 300
READY_POLL_SECONDS = 0.1
READ_SECONDS = 0.2
SILENT_SECONDS = 30.0  # without a record although all is committed: no more will come
REQUEST_SECONDS = 30.0  # timeout of a request to a worker; it is repeated


def run_demo(plan: DemoPlan, display: Display) -> DemoSummary | FeatureSummary:
    """Run the demo and return the summary; raises when not every record was answered."""
    truth = read_truth(plan, display.note)
    with ExitStack() as cleanup:
        directory = cleanup.enter_context(_work_directory())
        servers = plan.bootstrap_servers
        if servers is None:
            display.say("starting Apache Kafka")
            servers = cleanup.enter_context(EmbeddedBroker(tell=display.say)).bootstrap_servers
        demo = _Demo(plan, display, truth, directory, servers)
        cleanup.callback(demo.close)
        demo.make_topics()
        cold = kernels_are_cold()
        with display.waiting(f"compiling kernels (once; {TAKES_SOME})" if cold else "loading kernels"):
            # The worker itself warms the kernels of the default spec before it is ready.
            warm_kernels(Spec.parse(), *(Spec.parse(dict(model.spec)) for model in plan.models))
        return demo.run()


def read_truth(plan: DemoPlan, note: Callable[[str], None] | None = None) -> Truth:
    """Read the data set once, for the classes of its rows, and to find mistakes before any process starts.

    `note` gets the lines with the inferred format of a file that the plan names.
    """
    dataset = open_data(
        plan.address,
        plan.records,
        form=plan.form,
        target=plan.target,
        header=plan.header,
        delimiter=plan.delimiter,
        ignore=plan.ignore,
        nominal=plan.nominal,
        skip_lines=plan.skip_lines,
        missing=plan.missing,
        decimal=plan.decimal,
        thousands=plan.thousands,
        quotes=plan.quotes,
        zero_based=plan.zero_based,
        bounded_by="--records",
    )
    check_attributes(dataset)
    if note is not None and plan.data is not None and isinstance(dataset, FileDataset):
        for line in inference_lines(dataset, plan.target is not None, plan.header is not None):
            note(line)
    codes: list[np.ndarray[Any, np.dtype[np.int32]]] = []
    rows_left = plan.records
    for _, y in dataset.batches():
        codes.append(y if rows_left is None else y[:rows_left])
        if rows_left is not None:
            rows_left -= len(codes[-1])
            if rows_left == 0:
                break
    if not sum(map(len, codes)):
        message = f"{plan.address} has no rows; name a data set with at least one"
        raise UsageError(message)
    all_codes = np.concatenate(codes)
    return Truth(all_codes, dataset.classes, schema_of(dataset))


class _Demo:
    """The processes of one demo and their results."""

    def __init__(self, plan: DemoPlan, display: Display, truth: Truth, directory: Path, servers: str) -> None:
        self._plan = plan
        self._display = display
        self._truth = truth
        self._directory = directory
        token = secrets.token_hex(4)
        self._settings = load_settings(
            application_id=f"grove-demo-{token}",
            bootstrap_servers=servers,
            topics_prefix=f"grove.demo-{token}.",
            topics_partitions=PARTITIONS,
            state_dir=directory / "state",
            web_host="127.0.0.1",
            web_port=free_ports(plan.workers + 1),
            log_format="text",
            pending_keep="requested",
            evaluation_every=WATCHED_EVERY if plan.web else EVERY,
        )
        self._kafka = librdkafka_properties(self._settings)
        self._names = TopicNames(self._settings.topics_prefix)
        self._processes: dict[str, GuardedProcess] = {}
        self._external = plan.bootstrap_servers is not None
        self._created = False
        self._web = ""  # address
        self._cluster = DemoCluster(
            self._kafka, self._names, self._settings.application_id, PARTITIONS, features=plan.features
        )

    @property
    def _total(self) -> int:
        return self._truth.rows * len(self._plan.models)

    def make_topics(self) -> None:
        """Create the topics; a missing broker is found here, before any slow step."""
        self._display.say("creating topics")
        create(self._kafka, self._names, PARTITIONS, tell=self._display.say)
        self._created = True

    def run(self) -> DemoSummary | FeatureSummary:
        """Start the processes, follow the stream to its end and sum it up."""
        self._send_controls()
        self._display.say("starting worker and oracle")
        self._start("worker", "worker", "--workers", str(self._plan.workers), "--no-spare")
        person = self._plan.person
        exceptions = [] if person is None else [f"--except={person.key}"]
        self._start("oracle", "oracle", *self._plan.data_options(), *exceptions)
        if self._plan.features:
            self._start("feature-oracle", "oracle", "--features", *self._plan.data_options())
        self._wait_until_warm()
        if self._plan.web:
            self._start_web()
        group = f"{self._settings.application_id}-watch"
        outputs = output_reader(self._settings)
        with Watch(
            self._kafka, self._names, PARTITIONS, self._truth, self._plan.models, group, outputs
        ) as watch:
            began = time.monotonic()
            self._start("replay", "replay", *self._plan.data_options(), *self._replay_options())
            if person is not None:
                self._wait_for_request(watch, person)
            with self._display.live(watch, self._total):
                self._follow(watch)
            ended = watch.last_answer or time.monotonic()
            summary = self._summary(watch, ended - began)
        if self._plan.web:
            self._stay()
        return summary

    def close(self) -> None:
        """End every process, last started first; on a given broker, delete the demo's topics."""
        for process in reversed(self._processes.values()):
            process.ask_to_stop()
        for process in self._processes.values():
            process.stop()
        if self._external and self._created:
            self._cluster.delete_topics()
        self._cluster.close()

    def _send_controls(self) -> None:
        # A model that is to buy features needs a schema of them, and a person a button for each class.
        truth, buy, person = self._truth, self._plan.features, self._plan.person
        bodies: list[dict[str, Any]] = [
            {"spec": model.spec} | ({"schema": truth.schema} if buy or model is person else {})
            for model in self._plan.models
        ]
        values = encode_controls([("create", body) for body in bodies])
        keys = [model.key.encode() for model in self._plan.models]
        partitions = [partition_of(key, PARTITIONS) for key in keys]
        with contextlib.closing(Sender(self._kafka)) as sender:
            sender.send([self._names.controls] * len(keys), values, keys, partitions, [0] * len(keys))
            sender.flush()

    def _start(self, name: str, *arguments: str) -> None:
        self._processes[name] = GuardedProcess(
            [sys.executable, "-m", "streamapp", *arguments],
            self._directory / f"{name}.log",
            environment=_environment(self._settings),
        )

    def _start_web(self) -> None:
        """Start the web application, and read its address."""
        person = self._plan.person
        assert person is not None
        self._start("web", "web", "--port", "0", f"--model={person.key}")

        def is_there() -> bool:
            text = (self._directory / "web.log").read_text("utf-8", "replace")
            match = re.search(r"grove web is at (\S+)", text)
            self._web = match[1] if match else ""
            return bool(match)

        self._wait_for("web", is_there)

    def _wait_for_request(self, watch: Watch, person: DemoModel) -> None:
        """Wait for the first request of the person's model, and show the address of its card.

        A model that requests no label has no card; then all its records are answered.
        """
        tally = watch.models[person.key]
        while not tally.asked and not (self._replayed and tally.complete):
            self._check_processes()
            watch.read(READ_SECONDS)
        card = "your first card" if tally.asked else "no card yet"
        others = "; the oracle labels for the others" if len(self._plan.models) > 1 else ""
        line = f"grove web is at {self._web} ({card}: {self._web}label); you label for {person.key}{others}"
        self._display.head(line)

    def _stay(self) -> None:
        """Keep all processes running until an interrupt, which may come while the message is shown."""
        with contextlib.suppress(KeyboardInterrupt):
            self._display.head(f"the replay is over; grove web is at {self._web} until Ctrl-C")
            while True:
                self._check_processes()
                self._processes["web"].wait(READY_POLL_SECONDS)

    def _replay_options(self) -> list[str]:
        keys = [option for model in self._plan.models for option in ("--key", model.key)]
        rows = ["--records", str(self._truth.rows)]
        withheld = ["--withhold", "*"] if self._plan.features else []
        most = FEATURES_MAX_OUTSTANDING if self._plan.features else MAX_OUTSTANDING
        ahead = ["--max-outstanding", str(most)]
        return [*keys, *rows, *withheld, *ahead, "--labels", "none", "--rate", str(self._plan.rate), "--json"]

    def _wait_until_warm(self) -> None:
        """Wait for worker and oracle, because earlier records would be answered before labels can come back.

        The worker then has made the models and compiled or loaded everything for them.
        """
        self._wait_for("oracle", lambda: self._oracle_is_ready("oracle"))
        if self._plan.features:
            self._wait_for("feature-oracle", lambda: self._oracle_is_ready("feature-oracle"))
        self._wait_for("worker", self._worker_is_ready)
        self._wait_for("worker", self._models_are_made)

    def _wait_for(self, name: str, is_ready: Callable[[], bool]) -> None:
        """Wait until a process is ready, as long as it runs, and report now and then that it starts."""
        patience = Patience(math.inf, self._display.say)
        while not is_ready():
            patience.note(f"the {name} is not ready yet; {self._last_words(name)}")
            self._processes[name].wait(READY_POLL_SECONDS)
            self._check_processes()

    def _models_are_made(self) -> bool:
        """Whether the worker has committed the commands that make the models."""
        self._cluster.look()
        progress = self._cluster.progress
        return progress.controls == len(self._plan.models) and progress.lag == 0

    def _oracle_is_ready(self, name: str) -> bool:
        """Whether an oracle has joined its group; it has read the data set before."""
        return self._cluster.has_members(f"{self._settings.application_id}-{name}")

    def _worker_is_ready(self) -> bool:
        url = f"http://127.0.0.1:{self._settings.web_port}/readyz"
        try:
            with urllib.request.urlopen(url, timeout=REQUEST_SECONDS) as answer:
                return bool(answer.status == 200)
        except OSError:  # not listening yet, or 503: not ready yet
            return False

    def _follow(self, watch: Watch) -> None:
        """Read results until every record is answered and every requested label is learned.

        Also stop when no record comes any more although worker and oracles have committed all there is.
        """
        moved = time.monotonic()
        while True:
            self._check_processes()
            if watch.read(READ_SECONDS) or not (self._replayed and self._cluster.progress.lag == 0):
                moved = time.monotonic()
            self._cluster.look()
            self._display.update(watch, self._cluster.progress.lag)
            if self._replayed and watch.complete and self._settled(watch):
                return
            if time.monotonic() - moved > SILENT_SECONDS:
                return

    @property
    def _replayed(self) -> bool:
        return self._processes["replay"].status == 0

    def _settled(self, watch: Watch) -> bool:
        """Whether every requested label has come back and all records are committed."""
        person = self._plan.person
        asked = watch.asked - (0 if person is None else watch.models[person.key].asked)
        return self._cluster.progress.labels >= asked and self._cluster.progress.lag == 0

    def _check_processes(self) -> None:
        """Raise if a process has ended that should still run."""
        for name, process in self._processes.items():
            if process.status is not None and not (name == "replay" and process.status == 0):
                message = f"the {name} ended with status {process.status}: {self._last_words(name)}"
                raise StreamappError(message)

    def _last_words(self, name: str) -> str:
        lines = (self._directory / f"{name}.log").read_text("utf-8", "replace").split("\n")
        printed = [line.strip() for line in lines if line.strip()]
        return printed[-1][:500] if printed else "its log is empty"

    def _summary(self, watch: Watch, seconds: float) -> DemoSummary | FeatureSummary:
        judged, right = map(sum, zip(*(model.evaluated for model in watch.models.values()), strict=True))
        if self._plan.features:
            tallies = watch.models
            return FeatureSummary(
                instances=self._cluster.progress.sent,
                predictions=watch.answered,
                features_requested=sum(model.features_requested for model in tallies.values()),
                features_available=self._total * self._truth.features,
                cost=sum(model.cost for model in tallies.values()),
                dead_letters=watch.dead_letters,
                accuracy=right / judged if judged else 0.0,
                seconds=round(seconds, 3),
                models={
                    key: {"cost": model.cost / max(1, model.answered), "accuracy": model.accuracy}
                    for key, model in tallies.items()
                },
            )
        return DemoSummary(
            instances=self._cluster.progress.sent,
            predictions=watch.answered,
            labels_requested=watch.asked,
            labels_learned=self._learned(),
            accuracy=right / judged if judged else 0.0,
            records_per_second=round(watch.answered / seconds, 1),
            drift_alerts=watch.drifts,
            dead_letters=watch.dead_letters,
            seconds=round(seconds, 3),
            models={
                key: {
                    "accuracy": tally.accuracy,
                    "first_fifth": tally.first_accuracy,
                    "last_fifth": tally.last_accuracy,
                    "untrained": tally.untrained,
                }
                for key, tally in watch.models.items()
            },
        )

    def _learned(self) -> int:
        """Labels learned, by the workers' metrics."""
        total = 0.0
        first, n = self._settings.web_port, self._plan.workers
        # Several workers have a parent process, which has the port; worker n has port + n.
        for port in [first] if n == 1 else range(first + 1, first + n + 1):
            text = self._metrics(port)
            for family in text_string_to_metric_families(text):
                total += sum(
                    sample.value
                    for sample in family.samples
                    if sample.name == "grove_records_total"
                    and sample.labels == {"topic": "labels", "outcome": "learned"}
                )
        return int(total)

    def _metrics(self, port: int) -> str:
        """Return the metrics of a worker; a request to a busy worker is repeated while the worker runs."""
        while True:
            try:
                with urllib.request.urlopen(
                    f"http://127.0.0.1:{port}/metrics", timeout=REQUEST_SECONDS
                ) as answer:
                    text: str = answer.read().decode()
                    return text
            except TimeoutError:
                self._check_processes()


def _environment(settings: Settings) -> dict[str, str]:
    """This process's environment, with all GROVE_ variables replaced by the demo's settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GROVE_")}
    return kept | to_environment(settings)


@contextmanager
def _work_directory() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="grove-demo-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
