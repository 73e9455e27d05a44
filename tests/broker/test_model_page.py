"""A running worker hands out its models: the page `/models/KEY`, and `grove tree KEY`."""

from pathlib import Path

import orjson
import pytest

from core.model.model import Model
from streamapp.cli.main import main
from streamapp.errors import StreamappError
from streamapp.worker.observability.pages.snapshot_page import fetch_model
from tests.broker.workers import PATIENCE, Installation
from tests.conftest import Broker
from topics.clients.partitioner import partition_of

pytestmark = pytest.mark.broker

KEY = "shop/1 ü?"
SPEC = {"learner": {"name": "h-tree", "grace_period": 20, "delta": 0.1}}


def test_the_model_of_a_key_can_be_looked_at_while_the_worker_runs(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Installation(broker.bootstrap_servers, "shown.", 2, tmp_path, module="streamapp worker")
    producer = place.producer()
    for i in range(400):
        body = {"id": f"i{i}", "features": {"size": i % 10}, "label": "high" if i % 10 > 5 else "low"}
        producer.produce(
            place.names.instances, orjson.dumps(body), KEY.encode(), partition_of(KEY.encode(), 2)
        )
    assert producer.flush(PATIENCE) == 0
    with place.worker("w", GROVE_MODEL_SPEC=orjson.dumps(SPEC).decode()) as worker:
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        web = worker.web.removeprefix("http://")
        assert Model.restore(fetch_model(web, KEY)).summary().labels == 400
        assert main(["tree", KEY, "--web", web]) == 0
        with pytest.raises(StreamappError, match="answers 404: no model with the key 'nobody'"):
            fetch_model(web, "nobody")
        assert worker.terminate() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "all"
    assert lines[1].startswith("  size <= ")
    assert ": low (" in lines[1]
