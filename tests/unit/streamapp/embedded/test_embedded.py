"""Jars of the embedded broker: lock, the user's Maven settings, fetching from a local server."""

import functools
import hashlib
import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamapp.embedded import EmbeddedCluster, jars, maven
from streamapp.embedded.broker_cluster import NODES_FILE, check_directory
from streamapp.embedded.configuration import Membership, server_properties
from streamapp.embedded.lock import Jar, read_lock
from streamapp.errors import DownloadError, EmbeddedBrokerError

CONTENT = {"a": b"first jar" * 100, "b": b"second jar" * 200}


def jar(name: str) -> Jar:
    body = CONTENT[name]
    return Jar("org.example", name, "1.0", hashlib.sha256(body).hexdigest(), len(body))


class Repository(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        requests: list[str] = self.server.paths  # type: ignore[attr-defined]
        requests.append(self.path)


@pytest.fixture
def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[http.server.ThreadingHTTPServer]:
    """A Maven repository on loopback, named as the mirror in the user's settings."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("M2_REPO", str(tmp_path / "home" / ".m2" / "repository"))
    monkeypatch.setattr(jars, "read_lock", lambda _: [jar("a"), jar("b")])
    for name, body in CONTENT.items():
        file = tmp_path / "remote" / jar(name).path
        file.parent.mkdir(parents=True)
        file.write_bytes(body)
    handler = functools.partial(Repository, directory=str(tmp_path / "remote"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.paths = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    mirror(tmp_path, f"http://127.0.0.1:{server.server_port}/")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def mirror(tmp_path: Path, url: str, mirror_of: str = "central") -> None:
    file = tmp_path / "home" / ".m2" / "settings.xml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        '<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0"><mirrors><mirror><id>m</id>'
        f"<mirrorOf>{mirror_of}</mirrorOf><url>{url}</url></mirror></mirrors></settings>"
    )


class TestLock:
    def test_every_jar_has_a_digest_and_appears_once(self) -> None:
        locked = read_lock()
        assert len(locked) == 45
        assert len({(jar.group, jar.artifact) for jar in locked}) == len(locked)
        assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) and jar.size > 0 for jar in locked)
        versions = {jar.artifact: jar.version for jar in locked}
        assert versions["kafka_2.13"] == versions["kafka-clients"] == "4.4.0"
        assert versions["log4j-slf4j-impl"] == versions["log4j-core"] == "2.24.3"


class TestFetching:
    def test_once(self, remote: http.server.ThreadingHTTPServer, tmp_path: Path) -> None:
        cache = tmp_path / "cache"
        files = jars.fetch_jars(cache)
        assert [file.read_bytes() for file in files] == list(CONTENT.values())
        assert len(remote.paths) == 2  # type: ignore[attr-defined]
        assert jars.fetch_jars(cache) == files
        assert len(remote.paths) == 2  # type: ignore[attr-defined]
        assert sorted(file.name for file in cache.iterdir()) == [".lock", "a-1.0.jar", "b-1.0.jar"]

    def test_a_damaged_jar_is_fetched_again(self, remote: object, tmp_path: Path) -> None:
        files = jars.fetch_jars(tmp_path / "cache")
        files[0].write_bytes(CONTENT["a"][:-1] + b"X")
        assert jars.fetch_jars(tmp_path / "cache")[0].read_bytes() == CONTENT["a"]

    def test_wrong_bytes_are_refused_and_not_kept(self, remote: object, tmp_path: Path) -> None:
        (tmp_path / "remote" / jar("b").path).write_bytes(b"Second jar" * 200)
        with pytest.raises(DownloadError, match="differ from the locked file"):
            jars.fetch_jars(tmp_path / "cache")
        assert "b-1.0.jar" not in {file.name for file in (tmp_path / "cache").iterdir()}

    def test_a_missing_jar_is_one_clear_line(self, remote: object, tmp_path: Path) -> None:
        (tmp_path / "remote" / jar("a").path).unlink()
        with pytest.raises(
            DownloadError, match=r"cannot fetch a-1\.0\.jar .*404.*GROVE_KAFKA_BOOTSTRAP_SERVERS"
        ) as got:
            jars.fetch_jars(tmp_path / "cache")
        assert "\n" not in str(got.value)

    def test_nobody_there(self, remote: http.server.ThreadingHTTPServer, tmp_path: Path, monkeypatch) -> None:
        monkeypatch.setattr(jars, "ATTEMPTS", 0)
        mirror(tmp_path, "http://127.0.0.1:1")
        with pytest.raises(DownloadError, match=r"Connection refused\); check the network"):
            jars.fetch_jars(tmp_path / "cache")

    def test_jars_of_the_local_repository_are_taken(
        self, remote: http.server.ThreadingHTTPServer, tmp_path: Path
    ) -> None:
        for name, body in CONTENT.items():
            file = tmp_path / "home" / ".m2" / "repository" / jar(name).path
            file.parent.mkdir(parents=True)
            file.write_bytes(body)
        jars.fetch_jars(tmp_path / "cache")
        assert remote.paths == []  # type: ignore[attr-defined]

    def test_two_starts_at_once_fetch_once(
        self, remote: http.server.ThreadingHTTPServer, tmp_path: Path
    ) -> None:
        results: list[list[Path]] = []
        starts = [
            threading.Thread(target=lambda: results.append(jars.fetch_jars(tmp_path / "cache")))
            for _ in range(2)
        ]
        for start in starts:
            start.start()
        for start in starts:
            start.join()
        assert results[0] == results[1]
        assert len(remote.paths) == 2  # type: ignore[attr-defined]

    def test_cache_that_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(DownloadError, match="XDG_CACHE_HOME"):
            jars.fetch_jars(tmp_path / "file" / "cache")

    def test_cache_directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert jars.cache_directory() == tmp_path / "streamgrove" / "kafka"


class TestMavenSettings:
    @pytest.mark.parametrize(
        ("pattern", "expected"),
        [
            ("central", True),
            ("*", True),
            ("external:*", True),
            ("*,!central", False),
            ("other", False),
            ("a, central", True),
        ],
    )
    def test_mirror_of(self, pattern: str, expected: bool) -> None:
        assert maven.mirrors_central(pattern) is expected

    def test_mirror_with_credentials_proxy_and_variables(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MIRROR_PASSWORD", "p")
        file = tmp_path / "settings.xml"
        file.write_text(
            "<settings><localRepository>/repository</localRepository>"
            "<servers><server><id>m</id><username>u</username><password>${env.MIRROR_PASSWORD}</password></server></servers>"
            "<mirrors><mirror><id>m</id><mirrorOf>*</mirrorOf><url>http://mirror.test/maven/</url></mirror></mirrors>"
            "<proxies><proxy><active>false</active><host>no.test</host></proxy>"
            "<proxy><active>true</active><host>proxy.test</host><port>3128</port><username>a@b</username>"
            "<password>c:d</password><nonProxyHosts>*.inner.test|localhost</nonProxyHosts></proxy></proxies></settings>"
        )
        settings = maven.read_maven_settings([tmp_path / "absent.xml", file])
        assert maven.sources(settings) == [maven.Repository("http://mirror.test/maven", ("u", "p"))]
        assert settings.local == Path("/repository")
        proxy = "http://a%40b:c%3Ad@proxy.test:3128"
        assert maven.proxies_for("http://mirror.test/x", settings) == {"http": proxy, "https": proxy}
        assert maven.proxies_for("http://x.inner.test/y", settings) == {}

    def test_without_settings_the_resolver_decides(self) -> None:
        sources = maven.sources(maven.MavenSettings())
        assert sources
        assert all(source.url.startswith("https://") and not source.url.endswith("/") for source in sources)

    def test_broken_settings_are_one_line(self, tmp_path: Path) -> None:
        (tmp_path / "settings.xml").write_text("<settings>")
        with pytest.raises(DownloadError, match="is not a Maven settings file"):
            maven.read_maven_settings([tmp_path / "settings.xml"])


def test_broker_listens_on_loopback_only_and_starts_groups_at_once() -> None:
    alone = Membership(1, "cluster", (1111, 2222), (1111, 2222), [2222])
    lines = dict(line.split("=", 1) for line in server_properties(Path("/data"), alone).splitlines())
    assert lines["listeners"] == "PLAINTEXT://127.0.0.1:1111,CONTROLLER://127.0.0.1:2222"
    assert lines["group.initial.rebalance.delay.ms"] == "0"
    assert lines["offsets.topic.num.partitions"] == lines["transaction.state.log.num.partitions"] == "4"
    assert lines["auto.create.topics.enable"] == "false"


def test_a_cluster_has_three_replicas_of_which_one_may_be_away() -> None:
    member = Membership(2, "cluster", (1111, 2222), (3333, 4444), [5555, 4444, 6666])
    lines = dict(line.split("=", 1) for line in server_properties(Path("/data"), member).splitlines())
    assert lines["listeners"] == "PLAINTEXT://127.0.0.1:1111,CONTROLLER://127.0.0.1:2222"
    assert lines["advertised.listeners"] == "PLAINTEXT://127.0.0.1:3333,CONTROLLER://127.0.0.1:4444"
    assert lines["controller.quorum.voters"] == "1@127.0.0.1:5555,2@127.0.0.1:4444,3@127.0.0.1:6666"
    assert (lines["node.id"], lines["process.roles"]) == ("2", "broker,controller")
    assert (lines["default.replication.factor"], lines["min.insync.replicas"]) == ("3", "2")
    assert lines["transaction.state.log.replication.factor"] == "3"


@pytest.mark.parametrize(("folders", "held"), [(["1", "2", "3"], 3), (["."], 1)])
def test_a_directory_is_of_one_number_of_nodes(tmp_path: Path, folders: list[str], held: int) -> None:
    for folder in folders:
        (tmp_path / folder / "data").mkdir(parents=True)
        (tmp_path / folder / "data" / "meta.properties").touch()
    check_directory(tmp_path, held)
    with pytest.raises(EmbeddedBrokerError, match=f"has the data of --nodes {held}, not of --nodes 5"):
        EmbeddedCluster(5, tmp_path)


def test_the_directory_of_a_start_that_failed_halfway_has_the_number_of_that_start(tmp_path: Path) -> None:
    (tmp_path / "2" / "data").mkdir(parents=True)
    (tmp_path / "2" / "data" / "meta.properties").write_text("cluster.id=first\n")
    (tmp_path / NODES_FILE).write_text("3")
    check_directory(tmp_path, 3)
    with pytest.raises(EmbeddedBrokerError, match="has the data of --nodes 3, not of --nodes 5"):
        EmbeddedCluster(5, tmp_path)


def test_a_directory_without_data_takes_any_number_of_nodes(tmp_path: Path) -> None:
    (tmp_path / NODES_FILE).write_text("3")
    check_directory(tmp_path, 5)
