"""The preStop hook of a pod: which workers leave their group, by the answer of an API server over TLS."""

from __future__ import annotations

import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from typer.testing import CliRunner

from streamapp.cli.main import app
from streamapp.errors import StreamappError
from streamapp.tools import scale_down
from streamapp.tools.scale_down import is_scaled_away

TOKEN = "token-of-the-pod"


class Api(http.server.BaseHTTPRequestHandler):
    """Answers as Kubernetes' API does: with a StatefulSet, or with a status."""

    def do_GET(self) -> None:
        server: Any = self.server
        body: dict[str, Any] = {"kind": "Status"}
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            code = 401
        elif self.path != "/apis/apps/v1/namespaces/trees/statefulsets/fraud-streamgrove":
            code = 404
        else:
            code, body = server.answer
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


class Cluster:
    def __init__(self, server: Any, secrets: Path) -> None:
        self.server, self.secrets = server, secrets
        self.environment = {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(server.server_port),
        }

    def has(self, replicas: int, **more: Any) -> None:
        """Set the StatefulSet; `ordinals` belongs to its spec, all else to its metadata."""
        spec = {"replicas": replicas} | {name: more.pop(name) for name in ("ordinals",) if name in more}
        self.server.answer = 200, {"metadata": {"name": "fraud-streamgrove", **more}, "spec": spec}

    def scaled_away(self, pod: str) -> bool:
        return is_scaled_away(pod, self.environment, self.secrets)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    (tmp_path / "namespace").write_text("trees")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield Cluster(server, tmp_path)
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_pods_with_the_highest_numbers_are_scaled_away(cluster: Cluster) -> None:
    cluster.has(2)
    pods = [f"fraud-streamgrove-{number}" for number in range(4)]
    assert [cluster.scaled_away(pod) for pod in pods] == [False, False, True, True]


def test_numbers_may_begin_later(cluster: Cluster) -> None:
    cluster.has(2, ordinals={"start": 5})
    pods = [f"fraud-streamgrove-{number}" for number in (4, 5, 6, 7)]
    assert [cluster.scaled_away(pod) for pod in pods] == [True, False, False, True]


def test_workers_of_a_deleted_set_leave(cluster: Cluster) -> None:
    cluster.has(3, deletionTimestamp="2026-11-26T12:00:00Z")
    assert cluster.scaled_away("fraud-streamgrove-0")
    assert cluster.scaled_away("other-streamgrove-0"), "a set that is not there any more"


@pytest.mark.parametrize("status", [403, 500])
def test_a_refusal_is_one_clear_line(cluster: Cluster, status: int) -> None:
    cluster.server.answer = status, {"kind": "Status"}
    with pytest.raises(StreamappError, match=rf"cannot be read .*\({status} .*drainOnScaleDown=true"):
        cluster.scaled_away("fraud-streamgrove-0")


def test_a_wrong_token_is_refused(cluster: Cluster) -> None:
    (cluster.secrets / "token").write_text("another")
    with pytest.raises(StreamappError, match="401"):
        cluster.scaled_away("fraud-streamgrove-0")


def test_an_api_of_another_authority_is_not_read(cluster: Cluster) -> None:
    trustme.CA().cert_pem.write_to_path(str(cluster.secrets / "ca.crt"))
    with pytest.raises(StreamappError, match="SSLError"):
        cluster.scaled_away("fraud-streamgrove-0")


def test_outside_of_a_pod_the_option_needs_a_token(tmp_path: Path) -> None:
    with pytest.raises(StreamappError, match="needs a pod with a token"):
        is_scaled_away("fraud-streamgrove-0", {}, tmp_path)


def test_a_name_that_is_no_pod_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StreamappError, match="must be that of a pod of a StatefulSet"):
        is_scaled_away("laptop", {}, tmp_path)


@pytest.mark.parametrize(("replicas", "code"), [(1, 0), (0, 1)])
def test_the_command_drains_only_a_worker_that_is_scaled_away(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, replicas: int, code: int
) -> None:
    cluster.has(replicas)
    monkeypatch.setattr(scale_down, "SECRETS", cluster.secrets)
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    words = [
        "worker",
        "drain",
        "--on-scale-down",
        "--name=fraud-streamgrove-0",
        f"--set=state.dir={tmp_path}",
    ]
    ended = CliRunner().invoke(app, words)
    assert bool(ended.exit_code) == bool(code)
    if code:
        assert "fraud-streamgrove-0" in str(ended.exception), "no worker runs under that name"
    else:
        assert "is not scaled away" in ended.output
