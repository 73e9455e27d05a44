"""The settings class: names, types, ranges, defaults; rules over several settings are in `rules.py`."""

import os
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from streamapp.settings import rules
from streamapp.settings.settings_sources import EnvironmentSource, FileSource
from streamapp.settings.spellings import is_secret
from topics.fetching.refused import BATCH_BYTES
from topics.registry.registry_access import shown_addresses

DAY_MS = 24 * 3600 * 1000
MIB = 1 << 20


def default_state_dir() -> Path:
    """`$XDG_STATE_HOME/streamgrove`, by default below `~/.local/state`."""
    root = os.environ.get("XDG_STATE_HOME")
    return (Path(root) if root else Path("~/.local/state").expanduser()) / "streamgrove"


class Settings(BaseSettings):
    """All settings; made by `load_settings`, which turns mistakes into one-line errors."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", validate_default=True, protected_namespaces=()
    )
    sections: ClassVar[dict[str, str]] = {  # first attribute of a section of the page: title
        "application_id": "Application and Kafka clients",
        "topics_prefix": "Topics",
        "processing_guarantee": "Processing",
        "output_headers": "Output",
        "schema_registry_url": "Schema registry",
        "state_dir": "Process",
        "models_auto_create": "Models",
        "pending_keep": "Pending instances",
        "evaluation_every": "Reports",
        "log_level": "Logs",
    }

    application_id: str = Field(
        "streamgrove",
        pattern=r"^[A-Za-z0-9._-]{1,200}$",
        description="Name of the application; also the consumer group.",
    )
    bootstrap_servers: str = Field(
        "127.0.0.1:9092", min_length=1, description="Brokers, `host:port` separated by commas."
    )
    group_instance_id: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._-]{1,200}$",
        description="Name of this worker, kept over restarts; default `<hostname>-<n>`.",
    )
    client_id: str | None = Field(
        None, description="Name in the broker's logs and quotas; default: the worker's name."
    )
    kafka: dict[str, str | SecretStr] = Field(
        default_factory=dict, description="Any other property of the Kafka clients, passed on as it is."
    )

    topics_prefix: str = Field("grove.", description="Prefix of the name of every topic.")
    topics_partitions: int = Field(
        16,
        ge=1,
        le=100_000,
        description="Partitions of every topic; chosen once, 4 to 8 times the most workers ever.",
    )
    topics_replication_factor: int = Field(
        -1, ge=-1, le=100, description="Copies of every partition; -1 takes the broker's default."
    )

    processing_guarantee: Literal["at_least_once", "exactly_once"] = Field(
        "exactly_once",
        description="Outputs in the transaction that commits state and offsets, or (`at_least_once`) sent at "
        "once and perhaps again after a failure (docs/guarantees.md).",
    )
    transaction_timeout_ms: int = Field(
        40_000,
        ge=1000,
        le=900_000,
        description="Time until the broker ends a dead worker's transaction; before that it hides what "
        "comes after it.",
    )
    snapshot_max_replay_ms: int = Field(
        3000,
        ge=1,
        le=3_600_000,
        description="A snapshot of a partition is due when its restore would have to compute for this time.",
    )
    snapshot_max_replay_bytes: int = Field(
        256 << 20,
        ge=1,
        description="A snapshot is also due when a restore would have to read this number of bytes again.",
    )
    snapshot_interval_ms: int = Field(
        60_000, ge=1, description="Longest time from a change of a partition to its snapshot."
    )
    num_standby_replicas: int = Field(
        0,
        ge=0,
        le=100,
        description="Number of other workers with the snapshots of each partition on their disks, so that "
        "they need not read them when they take it over.",
    )
    commit_interval_ms: int = Field(100, ge=1, le=3_600_000, description="Time between commits.")
    max_poll_records: int = Field(
        10_000,
        ge=1,
        le=1_000_000,
        description="Most records of a run; under load a worker measures which number is the fastest.",
    )
    fetch_max_cpu_percent: int = Field(
        50,
        ge=1,
        le=100,
        description="Part of a core up to which a worker fetches more often than every 25 ms, to answer a "
        "trickle at least once sooner. Exactly once the commits determine the fetches.",
    )
    max_poll_interval_ms: int = Field(
        300_000,
        ge=1000,
        description="Longest time between two polls of a worker; after it the worker leaves the group.",
    )
    session_timeout_ms: int = Field(
        15_000,
        ge=1000,
        description="Time without a heartbeat after which a worker is taken out of the group.",
    )
    input_skew_ms: int = Field(
        1000, ge=0, description="Longest lead, in record time, of one input topic over the other topics."
    )
    max_task_idle_ms: int = Field(
        0,
        ge=-1,
        description="Time to wait for records of an input topic that is empty here: 0 only for records that "
        "the broker already has, -1 not at all.",
    )
    processing_exception_handler: Literal["stop-partition", "dead-letter"] = Field(
        "stop-partition",
        description="Result of an unexpected error: stop its partition, or dead-letter the record.",
    )

    output_headers: Literal["minimal", "full"] = Field(
        "minimal",
        description="Headers of the answers: only the headers of the input, or all (docs/outcomes.md).",
    )
    output_format: Literal["json", "packed", "avro"] | None = Field(
        None,
        description="Format of the answers to single records; default: that of the answered record. "
        "`avro`: of label requests, alerts and evaluations, too.",
    )

    schema_registry_url: str | None = Field(
        None,
        description="Addresses of a schema registry, separated by commas; without it, records have no "
        "schemas (docs/schemas.md).",
    )
    basic_auth_credentials_source: Literal["USER_INFO", "URL", "SASL_INHERIT"] | None = Field(
        None,
        description="Where user and password for the registry come from: `basic.auth.user.info`, the "
        "address, or `sasl.username` and `sasl.password`. Default: the first, if set, else the address.",
    )
    basic_auth_user_info: SecretStr | None = Field(
        None, description="`user:password` for the registry; never shown."
    )
    bearer_auth_credentials_source: Literal["STATIC_TOKEN", "SASL_OAUTHBEARER_INHERIT"] | None = Field(
        None,
        description="Where the token for the registry comes from: `bearer.auth.token`, or the source of "
        "tokens for the brokers. Default: the first, if it is set.",
    )
    bearer_auth_token: SecretStr | None = Field(None, description="Token for the registry; never shown.")
    bearer_auth_logical_cluster: str | None = Field(
        None, description="Id of the registry in Confluent Cloud, sent with a token."
    )
    bearer_auth_identity_pool_id: str | None = Field(
        None, description="Id of the identity pool in Confluent Cloud, sent with a token."
    )
    schema_registry_ssl_ca_location: str | None = Field(
        None, description="PEM file or folder of the authorities of the registry's certificate."
    )
    schema_registry_ssl_certificate_location: str | None = Field(
        None, description="PEM file of this client's certificate for the registry (mTLS)."
    )
    schema_registry_ssl_key_location: str | None = Field(
        None, description="PEM file of the key of that certificate; default: the same file."
    )
    value_subject_name_strategy: Literal[
        "TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy"
    ] = Field(
        "TopicNameStrategy",
        description="Subject under which the schemas of outputs are registered.",
    )

    state_dir: Path = Field(
        default_factory=default_state_dir, description="Directory of the worker's lock and state."
    )
    web_host: str = Field(
        "127.0.0.1", min_length=1, description="Address of `/livez`, `/readyz`, `/metrics`, `/models/KEY`."
    )
    web_port: int = Field(
        6066, ge=0, le=65_535, description="Port of the same; worker n of `--workers` takes port + n."
    )

    models_auto_create: bool = Field(True, description="A first record of a new model key makes its model.")
    models_max_count: int = Field(
        200_000, ge=1, description="Models of a worker at most; more are dead letters."
    )
    models_max_bytes: int = Field(
        0,
        ge=0,
        description="Most bytes of models in a worker's memory between runs; the longest unused lie in "
        "`state.dir` until they are used (docs/operations.md). 0: no limit.",
    )
    models_max_classes: int = Field(64, ge=2, le=10_000, description="Classes of a model at most.")
    models_max_attributes: int = Field(
        4096,
        ge=1,
        le=1_000_000,
        description="Attributes of a model that a record or a control makes, at most.",
    )
    model_spec: str = Field(
        "h-tree", min_length=1, description="Spec of new models: a preset's name or JSON (docs/trees.md)."
    )

    pending_keep: Literal["requested", "all"] = Field(
        "requested",
        description="Instances that wait for their label: instances with a label request, or all.",
    )
    pending_max_bytes: int = Field(
        64 * MIB, ge=4096, description="Bytes of waiting instances per partition at most."
    )
    pending_ttl_ms: int = Field(
        7 * DAY_MS, ge=1, description="How long, in record time, an instance waits for its label."
    )
    event_time_max_jump_ms: int = Field(
        DAY_MS,
        ge=1,
        description="A single record further ahead than this does not move the partition's clock.",
    )
    block_max_rows: int = Field(10_000, ge=1, le=10_000_000, description="Rows of a block record at most.")
    record_max_bytes: int = Field(8 * MIB, ge=1024, le=1 << 30, description="Bytes of a record at most.")
    fetch_decompressed_max_bytes: int = Field(
        BATCH_BYTES,
        ge=1 << 20,
        le=1 << 30,
        description="Bytes that a batch of records, or all that is taken of a fetch, may become when it is "
        "decompressed. A larger batch is a dead letter (docs/operations.md).",
    )
    text_max_bytes: int = Field(
        1024,
        ge=16,
        le=1 << 20,
        description="Bytes of a model key, id, class, annotator, feature name or nominal value at most.",
    )
    max_class_name_bytes: int = Field(
        256,
        ge=1,
        le=1 << 20,
        description="Most bytes of a class name: each answer of its model repeats it.",
    )
    max_output_bytes: int = Field(
        64 << 10,
        ge=4096,
        le=1 << 30,
        description="Most bytes of an output, or 64 times the bytes of its record, or 256 for each of its "
        "rows: the largest of the three.",
    )

    evaluation_every: int = Field(1000, ge=1, description="Labels between two evaluations of a model.")
    dead_letter_stacktrace: bool = Field(
        False, description="Dead letters carry the stack trace (it shows file names)."
    )

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="Least level that is logged."
    )
    log_format: Literal["auto", "text", "json"] = Field(
        "auto", description="`json` one object a line, `text` for people, `auto`: text on a terminal."
    )

    @field_validator("kafka", mode="before")
    @classmethod
    def _hide_secrets(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: _property(name, setting) for name, setting in value.items()}

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, value: Any) -> Any:
        return value.upper() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _agree(self) -> Self:
        problems = rules.problems(self)
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments (flags), environment, file; pydantic's own environment sources are not used."""
        return init_settings, EnvironmentSource(settings_cls), FileSource(settings_cls)

    def shown(self) -> dict[str, str]:
        """Kafka name → value for display, pass-through properties included, secrets masked."""
        shown = {}
        for attribute in type(self).model_fields:
            if attribute != "kafka":
                value = getattr(self, attribute)
                shown[attribute.replace("_", ".")] = _shown(attribute, value)
        return shown | {name: _plain(value) for name, value in sorted(self.kafka.items())}


def _property(name: str, value: Any) -> Any:
    if isinstance(value, SecretStr):
        return value
    text = _plain(value)
    return SecretStr(text) if is_secret(name) else text


def _shown(attribute: str, value: Any) -> str:
    """A value as text for display: addresses without user and password."""
    return shown_addresses(_plain(value)) if attribute == "schema_registry_url" else _plain(value)


def _plain(value: Any) -> str:
    """A value as text, as it is written in the environment."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
