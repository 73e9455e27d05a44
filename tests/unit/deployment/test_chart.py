"""The Helm chart: values and their schema, the rendered default beside the overlay, and single values."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from streamapp.settings import load_settings
from streamapp.settings.catalogue_file import COMPONENTS, catalogue_text
from streamapp.settings.check import check_clients, check_spec
from streamapp.settings.loading import unknown_variables
from streamapp.settings.rights import RIGHTS
from tests.unit.deployment.helm import CHART, EXAMPLES, RELEASE, VERSION, helm, objects, template
from tests.unit.deployment.manifests import KUBERNETES, Manifest, documents, few_rights
from tests.unit.deployment.test_kubernetes import VERSIONS
from topics.definitions import CATALOGUE

Object = dict[str, Any]

BY_HELM = (
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "helm.sh/chart",
    "checksum/settings",
)
"""Labels and annotations that the kustomization does not have."""

ALL = (
    "--set=autoscaling.enabled=true,web.enabled=true,web.tls.secret=web-tls,bridge.enabled=true",
    "--set=bridge.url=https://labels.example.com,podMonitor.enabled=true,networkPolicy.enabled=true",
    "--set=strimzi.cluster=company,strimzi.topics=true,strimzi.users=true,kafka.ca.secret=ca",
    "--set=image.pullPolicy=Always,image.pullSecrets={registry}",
    "--set=schemaRegistry.url=http://registry:8080/apis/ccompat/v7,schemaRegistry.secret=registry",
    "--set=otel.OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318",
)
SECRET = {"GROVE_KAFKA_SASL_USERNAME": "grove", "GROVE_KAFKA_SASL_PASSWORD": "not-a-password"}
OPERATORS = ("KafkaTopic", "KafkaUser", "ScaledObject", "TriggerAuthentication", "PodMonitor")
"""Kinds that Kubernetes itself does not have."""


def values() -> Object:
    (document,) = documents(CHART / "values.yaml")
    return document


def schema() -> Object:
    read: Object = json.loads((CHART / "values.schema.json").read_text())
    return read


@pytest.fixture(scope="session")
def program(pytestconfig: pytest.Config) -> Path:
    return helm(pytestconfig)


@pytest.fixture(scope="session")
def rendered(program: Path) -> dict[str, list[Object]]:
    """The objects of the default, of everything switched on, and of each example."""
    cases = {"default": objects(program), "all": objects(program, *ALL)}
    return cases | {file.stem: objects(program, f"--values={file}") for file in EXAMPLES}


def named(objects: list[Object]) -> dict[tuple[str, str], Object]:
    return {(thing["kind"], thing["metadata"]["name"]): thing for thing in objects}


def paths(schema: Object, value: Any, place: str = "") -> Iterator[tuple[str, bool, bool]]:
    """Yield each member of schema or values: its path, is it in the schema, is it in the values."""
    members = schema.get("properties", {})
    if not members:
        return
    for name in members.keys() | value.keys():
        yield f"{place}.{name}", name in members, name in value
        if name in members and name in value and isinstance(value[name], dict):
            yield from paths(members[name], value[name], f"{place}.{name}")


class TestValues:
    def test_the_catalogue_is_current(self) -> None:
        file = CHART / "files" / "catalogue.json"
        command = f"grove config show --catalogue > {file.relative_to(KUBERNETES.parent)}"
        assert file.read_text() == catalogue_text(), command

    def test_the_schema_accepts_the_values_and_each_example(self) -> None:
        for file in [CHART / "values.yaml", *EXAMPLES]:
            (document,) = documents(file)
            jsonschema.validate(document, schema(), cls=jsonschema.Draft7Validator)

    def test_the_schema_has_exactly_the_values(self) -> None:
        differences = {path for path, declared, given in paths(schema(), values()) if declared != given}
        assert differences == {".global"}, "`global` belongs to the chart that includes this one"

    def test_every_value_is_used_by_a_template(self) -> None:
        text = "".join(file.read_text() for file in CHART.glob("templates/*"))
        given = {path.rpartition(".")[2] for path, _, given in paths(schema(), values()) if given}
        names = given - {"requests", "limits"}  # members of `resources`, which is rendered as a whole
        assert {name for name in names if not re.search(rf"\.{name}\b", text)} == set()

    def test_the_chart_has_the_version_of_the_package(self) -> None:
        import tomllib

        project = tomllib.loads((KUBERNETES.parent / "pyproject.toml").read_text())["project"]
        (chart,) = documents(CHART / "Chart.yaml")
        assert chart["appVersion"] == project["version"]
        assert chart["version"] == project["version"].replace(".dev", "-dev.")  # SemVer, which Helm demands


class TestRendering:
    @pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
    def test_lint_finds_nothing(self, program: Path, file: Path) -> None:
        command = [str(program), "lint", "--strict", str(CHART), f"--values={file}"]
        linted = subprocess.run(command, capture_output=True, text=True, check=False)
        assert linted.returncode == 0, linted.stdout
        assert not re.search("WARNING|ERROR", linted.stdout)

    @pytest.mark.parametrize("case", ["default", "all", *(file.stem for file in EXAMPLES)])
    def test_objects_are_those_that_the_api_accepts(self, rendered, case: str) -> None:
        for thing in rendered[case]:
            for version in VERSIONS if thing["kind"] not in OPERATORS else ():
                kubernetes_validate.validate(thing, version, strict=True)

    @pytest.mark.parametrize("case", ["all", *(file.stem for file in EXAMPLES)])
    def test_pods_run_with_few_rights(self, rendered, case: str) -> None:
        pods = [Manifest(CHART, thing) for thing in rendered[case]]
        checked = [few_rights(manifest) for manifest in pods if manifest.pod() is not None]
        assert checked

    def test_two_releases_share_no_object(self, program: Path) -> None:
        names = {name for _, name in named(objects(program, release="fraud"))}
        assert {name for name in names if not name.startswith("fraud-streamgrove")} == set()


def without_helm(value: Any) -> Any:
    """Return objects as both ways should give them: without Helm's labels and without checksums in names."""
    if isinstance(value, dict):
        return {name: without_helm(part) for name, part in value.items() if name not in BY_HELM}
    if isinstance(value, list):
        return [without_helm(part) for part in value]
    if isinstance(value, str):
        return re.sub(r"^(streamgrove(-topics)?)-[0-9a-z]{8}([0-9a-z]{2})?$", r"\1", value)
    return value


def kustomized(overlay: str) -> list[Object]:
    built = subprocess.run(
        ["kubectl", "kustomize", KUBERNETES / "overlays" / overlay], capture_output=True, check=True
    )
    things: list[Object] = list(yaml.safe_load_all(built.stdout))
    for thing in things:
        thing["metadata"].pop("namespace", None)
    return things


@pytest.mark.skipif(not Path("/usr/bin/kubectl").exists(), reason="rendering needs kubectl")
@pytest.mark.parametrize(("case", "overlay"), [("default", "production"), ("test-cluster", "dev")])
def test_both_ways_deploy_the_same_objects(rendered, case: str, overlay: str) -> None:
    ours = named([without_helm(thing) for thing in rendered[case]])
    theirs = named([without_helm(thing) for thing in kustomized(overlay)])
    alone = {("Namespace", theirs.keys() and f"streamgrove{'-dev' * (overlay == 'dev')}")}
    if overlay == "dev":
        alone |= {("Job", "streamgrove-replay"), ("Deployment", "streamgrove-oracle")}
        del theirs["ConfigMap", RELEASE]["data"]["GROVE_MODEL_SPEC"]  # of the component `replay`
    assert theirs.keys() - ours.keys() == alone
    assert ours == {identity: thing for identity, thing in theirs.items() if identity not in alone}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["workers.replica=3"], r"workers.*additional properties 'replica' not allowed"),
        (["kafka.securityProtocol=SASL"], r"/kafka/securityProtocol.*must be one of 'PLAINTEXT', 'SSL'"),
        (["kafka.bootstrapServers=kafka"], "bootstrapServers.*does not match pattern"),
        (["topics.partitions=many"], "partitions.*got string, want integer"),
        (["settings.LOG_LEVEL=DEBUG"], "at '/settings': additional properties 'LOG_LEVEL' not allowed"),
        (["workers.replicas=33"], r"workers\.replicas=33 must be at most topics\.partitions=32"),
        (["autoscaling.enabled=true"], r"autoscaling\.authentication\.secret must name a secret"),
        (
            ["autoscaling.enabled=true,autoscaling.maxReplicas=33,autoscaling.authentication.secret=a"],
            r"autoscaling\.maxReplicas=33 must be at most topics\.partitions=32",
        ),
        (["strimzi.topics=true"], r"strimzi\.cluster must name the Kafka object"),
        (
            ["strimzi.users=true,strimzi.cluster=a,kafka.saslMechanism=PLAIN"],
            r"kafka\.saslMechanism=PLAIN must be SCRAM-SHA-512 or OAUTHBEARER",
        ),
        (["kafka.saslMechanism=OAUTHBEARER"], r"kafka\.oauth\.method=oidc needs kafka\.oauth\.tokenEndpoint"),
        (["bridge.enabled=true"], r"bridge\.url must be the address of Label Studio"),
        (["web.enabled=true,web.proxy.header=X-User"], r"web\.proxy\.trusted must list"),
    ],
)
def test_a_wrong_value_is_refused_by_name(program: Path, options: list[str], text: str) -> None:
    refused = template(program, *(f"--set={option}" for option in options))
    assert refused.returncode != 0
    assert re.search(text, refused.stderr, re.DOTALL), refused.stderr


def containers(thing: Object) -> list[Object]:
    return [container for container in Manifest(CHART, thing).containers() if "args" in container]


@pytest.mark.parametrize("case", ["default", "all", *(file.stem for file in EXAMPLES)])
def test_a_worker_takes_its_settings_as_they_are_rendered(rendered, case: str, monkeypatch, tmp_path) -> None:
    by_name = named(rendered[case])
    variables = SECRET | by_name["ConfigMap", RELEASE]["data"]
    (worker,) = containers(by_name["StatefulSet", RELEASE])
    for variable in worker["env"]:
        variables[variable["name"]] = variable.get("value", "not-a-password")
    secret = tmp_path / "secret"
    secret.write_text("not-a-password")
    for name in [name for name in os.environ if name.startswith("GROVE_")]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, str(secret) if name.endswith("_FILE") else value)
    settings = load_settings()
    assert unknown_variables() == []
    assert settings.topics_partitions == int(variables["GROVE_TOPICS_PARTITIONS"])
    check_spec(settings)
    monkeypatch.delenv("GROVE_KAFKA_SSL_CA_LOCATION", raising=False)  # of a file that only a pod has
    check_clients(load_settings())


class TestStrimzi:
    def test_topics_are_those_of_the_catalogue(self, rendered) -> None:
        topics = {
            thing["spec"]["topicName"]: thing["spec"]
            for thing in rendered["all"]
            if thing["kind"] == "KafkaTopic"
        }
        assert topics == {
            f"grove.{topic.name}": {
                "topicName": f"grove.{topic.name}",
                "partitions": 32,
                "replicas": 3,
                "config": topic.config,
            }
            for topic in CATALOGUE
        }

    @pytest.mark.parametrize("component", ["worker", "web", "bridge"])
    def test_users_have_the_rights_of_the_table(self, rendered, component: str) -> None:
        user = named(rendered["all"])["KafkaUser", f"streamgrove-{component}"]["spec"]
        granted = {
            (acl["resource"]["type"], acl["resource"]["name"], acl["resource"]["patternType"], operation)
            for acl in user["authorization"]["acls"]
            for operation in acl["operations"]
        }
        assert granted == {
            (
                right.kind.replace("transactional-id", "transactionalId"),
                right.resource("grove.", "streamgrove"),
                "prefix" if right.prefixed else "literal",
                operation,
            )
            for command in COMPONENTS[component]
            for right in RIGHTS[command]
            for operation in right.operations
        }

    def test_without_prefix_a_right_on_all_topics_is_a_star(self, program: Path) -> None:
        user = named(objects(program, *ALL, "--set=topics.prefix="))["KafkaUser", "streamgrove-worker"]
        resources = [acl["resource"] for acl in user["spec"]["authorization"]["acls"]]
        assert {"type": "topic", "name": "*", "patternType": "literal"} in resources
        assert "" not in {resource["name"] for resource in resources}

    def test_a_component_signs_in_as_its_own_user(self, rendered) -> None:
        for component in ("worker", "web", "bridge"):
            name = RELEASE if component == "worker" else f"streamgrove-{component}"
            (container,) = containers(named(rendered["all"])["StatefulSet", name])
            env = {variable["name"]: variable for variable in container["env"]}
            user = f"streamgrove-{component}"
            assert env["GROVE_KAFKA_SASL_USERNAME"]["value"] == user
            secret = env["GROVE_KAFKA_SASL_PASSWORD"]["valueFrom"]["secretKeyRef"]
            assert secret == {"name": user, "key": "password"}

    def test_operators_make_topics_instead_of_a_job(self, rendered) -> None:
        assert "Job" not in {thing["kind"] for thing in rendered["all"]}
        assert "Job" in {thing["kind"] for thing in rendered["default"]}


class TestScaling:
    @pytest.mark.parametrize(("partitions", "replicas"), [(32, 16), (12, 12)])
    def test_there_are_no_more_workers_than_partitions(
        self, program: Path, partitions: int, replicas: int
    ) -> None:
        options = (
            f"--set=topics.partitions={partitions},autoscaling.maxReplicas={replicas},workers.replicas=2"
        )
        by_name = named(objects(program, *ALL, options))
        spec = by_name["ScaledObject", RELEASE]["spec"]
        assert spec["maxReplicaCount"] == replicas <= partitions
        assert spec["fallback"]["replicas"] <= spec["maxReplicaCount"]
        assert "replicas" not in by_name["StatefulSet", RELEASE]["spec"], "an upgrade keeps KEDA's number"
        triggers = [trigger["metadata"] for trigger in spec["triggers"]]
        assert [trigger["topic"] for trigger in triggers] == ["grove.instances", "grove.labels"]
        assert {trigger["allowIdleConsumers"] for trigger in triggers} == {"false"}
        assert {trigger["consumerGroup"] for trigger in triggers} == {"streamgrove"}

    def test_a_worker_that_is_scaled_away_may_leave_its_group(self, rendered) -> None:
        by_name = named(rendered["all"])
        (worker,) = containers(by_name["StatefulSet", RELEASE])
        assert worker["lifecycle"]["preStop"]["exec"]["command"][:3] == ["grove", "worker", "drain"]
        (rule,) = by_name["Role", RELEASE]["rules"]
        assert rule == {
            "apiGroups": ["apps"],
            "resources": ["statefulsets"],
            "resourceNames": [RELEASE],
            "verbs": ["get"],
        }
        for name in ("streamgrove-web", "streamgrove-bridge"):
            pod = by_name["StatefulSet", name]["spec"]["template"]["spec"]
            assert "serviceAccountToken" not in json.dumps(pod), "others need no token"
        default = named(rendered["default"])["StatefulSet", RELEASE]
        assert "serviceAccountToken" not in json.dumps(default)


def test_policies_select_each_kind_of_pod_and_name_the_ports_of_brokers(rendered) -> None:
    policies = {
        thing["metadata"]["name"]: thing["spec"]
        for thing in rendered["all"]
        if thing["kind"] == "NetworkPolicy"
    }
    assert policies.keys() == {f"streamgrove-{component}" for component in ("worker", "web", "bridge")}
    for spec in policies.values():
        assert spec["policyTypes"] == ["Ingress", "Egress"]
        assert spec["ingress"] == [], "a policy without sources lets no pod in"
        assert {"protocol": "TCP", "port": 9093} in spec["egress"][1]["ports"]
    registry, collector, api, label_studio = 8080, 4318, 6443, 443
    opened = {
        name: {port["port"] for rule in spec["egress"] for port in rule["ports"]}
        for name, spec in policies.items()
    }
    assert opened["streamgrove-web"] == {53, 9093, registry, collector}
    assert opened["streamgrove-worker"] == {53, 9093, registry, collector, 443, api}
    assert opened["streamgrove-bridge"] == {53, 9093, registry, collector, label_studio}
    worker = named(rendered["strimzi"])["NetworkPolicy", "streamgrove-worker"]
    (rule,) = worker["spec"]["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": "http"}]


def test_numbers_are_written_with_all_their_digits(program: Path, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(
        "kafka: { properties: { fetch.max.bytes: 52428800, check.crcs: true } }\n"
        "settings: { GROVE_RECORD_MAX_BYTES: 10485760 }\notel: { OTEL_BSP_MAX_QUEUE_SIZE: 2048 }\n"
    )
    data = next(thing for thing in objects(program, f"--values={file}") if thing["kind"] == "ConfigMap")[
        "data"
    ]
    assert data["GROVE_KAFKA_FETCH_MAX_BYTES"] == "52428800"
    assert data["GROVE_KAFKA_CHECK_CRCS"] == "true"
    assert data["GROVE_RECORD_MAX_BYTES"] == "10485760"
    assert data["OTEL_BSP_MAX_QUEUE_SIZE"] == "2048"


@pytest.mark.parametrize("text", ["123", "true", "null", "0x1f"])
def test_names_stay_texts(program: Path, tmp_path: Path, text: str) -> None:
    values = {
        "image": {"pullSecrets": [text]},
        "kafka": {
            "secret": text,
            "ca": {"secret": text, "key": text},
            "client": {"secret": text, "key": text},
        },
        "workers": {"priorityClassName": text, "storage": {"className": text}},
        "web": {"enabled": True, "tls": {"secret": text}, "users": {"secret": text, "key": text}},
        "bridge": {"enabled": True, "url": "http://labels", "secret": text, "tokenKey": text},
        "autoscaling": {
            "enabled": True,
            "authentication": {"secret": text, "usernameKey": "a: {b", "passwordKey": text},
        },
        "strimzi": {"topics": True, "cluster": text},
    }
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    for thing in objects(program, f"--values={file}"):
        for place, value in scalars(thing):
            if re.search(r"([nN]ame|key|cluster|secret)$", place):
                assert isinstance(value, str), (thing["kind"], place, value)


def scalars(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each scalar of an object with its place."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from scalars(inner, f"{place}.{name}")
    elif isinstance(value, list):
        for inner in value:
            yield from scalars(inner, place)
    else:
        yield place, value


@pytest.mark.parametrize("text", ["a,b", "{x", "'q", "*x", "%z", "true", "123"])
def test_an_audience_is_a_text(program: Path, tmp_path: Path, text: str) -> None:
    file = tmp_path / "values.yaml"
    oauth = {"method": "file", "audience": text}
    file.write_text(yaml.safe_dump({"kafka": {"saslMechanism": "OAUTHBEARER", "oauth": oauth}}))
    pairs = [pair for thing in objects(program, f"--values={file}") for pair in scalars(thing)]
    audiences = {value for place, value in pairs if place.endswith(".audience")}
    assert audiences == {text}


@pytest.mark.parametrize(
    "values",
    [
        {"kafka": {"properties": {"sasl.password": "never-shown-7"}}},
        {"kafka": {"properties": {"sasl.oauthbearer.client.secret": "never-shown-7"}}},
        {"settings": {"GROVE_BASIC_AUTH_USER_INFO": "me:never-shown-7"}},
        {"schemaRegistry": {"url": "https://me:never-shown-7@registry:8081"}},
    ],
)
def test_secrets_do_not_become_part_of_a_config_map(program: Path, tmp_path: Path, values: Object) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    refused = template(program, f"--values={file}")
    assert refused.returncode != 0
    assert "are shown in a ConfigMap" in refused.stderr
    assert "never-shown-7" not in refused.stderr


def test_a_projected_token_signs_in(program: Path) -> None:
    options = "--set=kafka.saslMechanism=OAUTHBEARER,kafka.oauth.method=file,kafka.oauth.audience=brokers"
    by_name = named(objects(program, options))
    pod = by_name["StatefulSet", RELEASE]["spec"]["template"]["spec"]
    (token,) = [volume for volume in pod["volumes"] if volume["name"] == "kafka-token"]
    (source,) = token["projected"]["sources"]
    assert source["serviceAccountToken"]["audience"] == "brokers"
    (worker,) = containers(by_name["StatefulSet", RELEASE])
    (mount,) = [mount for mount in worker["volumeMounts"] if mount["name"] == "kafka-token"]
    address = by_name["ConfigMap", RELEASE]["data"]["GROVE_KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL"]
    assert address == f"file://{mount['mountPath']}/{source['serviceAccountToken']['path']}"


def test_documented_commands_render_the_chart(program: Path) -> None:
    page = (KUBERNETES.parent / "docs" / "deployment.md").read_text()
    lines = [line.split()[1:] for line in re.findall(r"^ {4}(?:\$ )?(helm .*)$", page, re.MULTILINE)]
    assert len(lines) > 3
    for _, *words in lines:
        command = [str(program), "template", *(word for word in words if word != "--create-namespace")]
        done = subprocess.run(
            [*command, f"--kube-version={VERSION}"], cwd=KUBERNETES.parent, capture_output=True, text=True
        )
        refused = "--set" in words  # the page shows the error
        assert bool(done.returncode) == refused, done.stderr
        assert not refused or "workers.replicas=33 must be at most topics.partitions=32" in done.stderr
