"""The settings. Their declarations are the only source of names, defaults, help texts and documentation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal

from light_scheduler.connection import Connection, HttpSecurity, KafkaSecurity, Secret
from light_scheduler.connection.http_security import CLIENT_AUTH
from light_scheduler.connection.identity_provider import IdentityProvider
from light_scheduler.connection.logins import secret_of
from light_scheduler.connection.registry import RegistryAccess
from light_scheduler.connection.security import MECHANISMS, PROTOCOLS
from light_scheduler.errors import ConfigurationError
from light_scheduler.model.delay import DelayRule
from light_scheduler.model.tenant import MAX_WEIGHT, Shares
from light_scheduler.model.topics import TopicNames, karafka_states_topic

from . import values as read
from .declaring import SECRET, setting
from .values import OWN_DIALECTS, CommandsTopic

Origin = Literal["default", "file", "context", "environment", "option", "node"]
"""The source of a setting's value. node: the value is specific to one of several processes of a node."""

KAFKA_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})
"""Kafka's own topics. A client that writes to them does damage, or fails forever."""


SECURITY_SETTINGS = tuple(each.name for each in fields(KafkaSecurity))
"""The settings for the login to Kafka."""

HTTP_SECURITY_SETTINGS = tuple(each.name for each in fields(HttpSecurity))
"""The settings for TLS of the HTTP server and its clients."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of a worker and its tools. Durations are in ms."""

    app_id: str = setting(
        "light-scheduler",
        read.kafka_name,
        "Application id. It is the prefix of every topic and the consumer group of the workers.",
        "TEXT",
    )
    broker: str = setting(
        "kafka://127.0.0.1:9092", read.broker, "Kafka brokers to connect to first.", "kafka://HOST:PORT[,HOST:PORT...]"
    )
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = setting(
        "PLAINTEXT",
        read.choice(*PROTOCOLS),
        "How to connect to Kafka: with TLS (SSL), a login (SASL_PLAINTEXT), both (SASL_SSL), or neither (PLAINTEXT).",
        "|".join(PROTOCOLS),
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None = setting(
        None, read.optional(read.choice(*MECHANISMS)), "How to log in to Kafka.", "|".join(MECHANISMS)
    )
    sasl_username: str | None = setting(None, read.optional(read.text), "User for PLAIN and SCRAM.", "TEXT")
    sasl_password: Secret | None = setting(None, read.optional(read.secret), "Password for PLAIN and SCRAM.", SECRET)
    sasl_password_file: Path | None = setting(
        None,
        read.optional(read.path),
        "File that holds the password for PLAIN and SCRAM. Clients read it once, at their start: restart them after a "
        "change.",
        "PATH",
    )
    sasl_oauth_token_url: str | None = setting(
        None, read.optional(read.token_url), "Token endpoint for OAUTHBEARER: https://...", "URL"
    )
    sasl_oauth_client_id: str | None = setting(None, read.optional(read.text), "Client id for OAUTHBEARER.", "TEXT")
    sasl_oauth_client_secret: Secret | None = setting(
        None, read.optional(read.secret), "Client secret for OAUTHBEARER.", SECRET
    )
    sasl_oauth_client_secret_file: Path | None = setting(
        None,
        read.optional(read.path),
        "File that holds the client secret for OAUTHBEARER. It is read again when it changes.",
        "PATH",
    )
    sasl_oauth_scope: str | None = setting(
        None, read.optional(read.text), "Scopes to request with OAUTHBEARER, separated by spaces.", "TEXT"
    )
    ssl_ca: Path | None = setting(
        None,
        read.optional(read.path),
        "PEM file with the certificates of the authorities that sign the brokers' certificates. Default: the "
        "authorities that the system trusts.",
        "PATH",
    )
    ssl_certificate: Path | None = setting(
        None, read.optional(read.path), "PEM file with the certificate of this client, for mutual TLS.", "PATH"
    )
    ssl_key: Path | None = setting(
        None,
        read.optional(read.path),
        "PEM file with the key of `ssl_certificate`. Needed if the certificate file does not hold the key.",
        "PATH",
    )
    ssl_key_password: Secret | None = setting(None, read.optional(read.secret), "Password of the private key.", SECRET)
    ssl_key_password_file: Path | None = setting(
        None, read.optional(read.path), "File that holds the password of the private key.", "PATH"
    )
    ssl_check_hostname: bool = setting(
        True,
        read.truth,
        "Check that the certificate of a broker names the host that the client connects to.",
        "true|false",
    )
    data_dir: Path = setting(
        Path("light-scheduler-data"),
        read.path,
        "Folder for local state. You can delete it while the worker is stopped: it is rebuilt from Kafka.",
        "PATH",
    )
    web_host: str = setting(
        "127.0.0.1",
        read.reachable_host,
        "Address of the HTTP server. The other workers must be able to reach it, so 0.0.0.0 does not work.",
        "HOST",
    )
    web_port: int = setting(6066, read.integer(1, read.MOST_PORT), "Port of the HTTP server.", "PORT")
    processes: int | Literal["auto"] = setting(
        1,
        read.processes,
        "Number of worker processes that `light-scheduler worker` runs on this machine, behind one HTTP port; auto: "
        "one per core. With more than one, process 0 uses `data_dir`; process N uses the folder N in it, the name "
        "`instance_id`-N in the group (default: named after the HTTP address), and the port `web_port` + 1 + N for the "
        "other workers.",
        "N|auto",
    )
    web_allowed_hosts: tuple[str, ...] = setting(
        (),
        read.hosts,
        "More host names to accept in requests, such as a proxy or a Kubernetes service. The server always accepts "
        "web_host, localhost, and the address where the request arrives.",
        "HOST,...",
    )
    web_ssl_certificate: Path | None = setting(
        None,
        read.optional(read.path),
        "PEM file with the certificate of the HTTP server, followed by those of intermediate authorities. With it, the "
        "server speaks HTTPS only. Workers and the command line show it to servers that want a client certificate.",
        "PATH",
    )
    web_ssl_key: Path | None = setting(
        None,
        read.optional(read.path),
        "PEM file with the key of `web_ssl_certificate`. Needed if the certificate file does not hold the key.",
        "PATH",
    )
    web_ssl_key_password: Secret | None = setting(
        None, read.optional(read.secret), "Password of the key of `web_ssl_certificate`.", SECRET
    )
    web_ssl_key_password_file: Path | None = setting(
        None, read.optional(read.path), "File that holds the password of the key of `web_ssl_certificate`.", "PATH"
    )
    web_ssl_ca: Path | None = setting(
        None,
        read.optional(read.path),
        "PEM file with the certificates of the authorities that sign the certificates of HTTP servers, for workers and "
        "the command line. Default: the authorities that the system trusts.",
        "PATH",
    )
    web_ssl_client_ca: Path | None = setting(
        None,
        read.optional(read.path),
        "PEM file with the certificates of the authorities that sign the certificates of clients of the HTTP server.",
        "PATH",
    )
    web_ssl_client_auth: Literal["none", "requested", "required"] = setting(
        "none",
        read.choice(*CLIENT_AUTH),
        "Whether clients of the HTTP server must show a certificate (mutual TLS). requested: a certificate is "
        "checked if the client shows one.",
        "|".join(CLIENT_AUTH),
    )
    insecure: bool = setting(
        False,
        read.truth,
        "Start even if other machines can reach the HTTP server and requests need no token.",
        "true|false",
    )
    token: Secret | None = setting(
        None, read.optional(read.secret), "Token that the command line sends to workers.", SECRET
    )
    token_file: Path | None = setting(
        None,
        read.optional(read.path),
        "File that holds the token that the command line sends to workers. It is read again when it changes.",
        "PATH",
    )
    oidc_issuer: str | None = setting(
        None,
        read.optional(read.provider_url),
        "Issuer whose JSON Web Tokens the HTTP server accepts (OpenID Connect). With it, every request needs a token.",
        "URL",
    )
    oidc_audience: str | None = setting(
        None, read.optional(read.text), "Audience (`aud`) that the tokens of `oidc_issuer` must have.", "TEXT"
    )
    oidc_jwks_url: str | None = setting(
        None,
        read.optional(read.provider_url),
        "Address of the public keys (JWKS) of `oidc_issuer`. Default: the one in its discovery document.",
        "URL",
    )
    oidc_role_claim: str = setting(
        "roles",
        read.text,
        "Claim of the token that lists its roles. Use dots for a nested claim: realm_access.roles.",
        "TEXT",
    )
    oidc_roles: tuple[tuple[str, str], ...] = setting(
        (),
        read.oidc_roles,
        "Role for each value of `oidc_role_claim`. If a token has several, the highest role counts.",
        "VALUE:metrics|read|write|admin,...",
    )
    oidc_tenant_claim: str = setting(
        "tenants",
        read.text,
        "Claim of the token that lists its tenants. `*` stands for all tenants.",
        "TEXT",
    )
    partitions: int = setting(
        4,
        read.integer(1, 10_000),
        "Partitions of the topics that `topics create` creates. More workers than partitions do not help.",
        "N",
    )
    replication_factor: int = setting(
        1, read.integer(1, 32), "Replicas of the topics that `topics create` creates. Use 3 in production.", "N"
    )
    lookback_minutes: int | None = setting(
        None,
        read.lookback,
        "How many minutes a firing may be overdue and still be delivered. See `missed` for older firings.",
        "N|all",
    )
    missed: Literal["fire", "dead-letter"] = setting(
        "dead-letter",
        read.choice("fire", "dead-letter"),
        "What to do with a firing that is overdue by more than `lookback_minutes`: deliver it, or dead-letter it.",
        "fire|dead-letter",
    )
    delivery_retries: int = setting(
        1,
        read.integer(0, 100_000),
        "Retries of a firing that its target refuses, one per minute. After the last, it becomes a dead letter.",
        "N",
    )
    tick: int = setting(
        1_000, read.duration(10), "Maximum time between two scans of a partition for due firings.", "DURATION"
    )
    stage_ahead: int = setting(
        70,
        read.duration(0),
        "How long before a full second to prepare its firings, so that only the commit is left; 0 turns this off. "
        "Consumers that read uncommitted records see these firings early. At most half of `transaction_timeout`.",
        "DURATION",
    )
    session_timeout: int = setting(
        6_000,
        read.duration(1_000),
        "How long a worker can be silent before the broker gives its partitions to other workers.",
        "DURATION",
    )
    transaction_timeout: int = setting(
        10_000,
        read.duration(2_000),
        "How long a transaction can take before the broker aborts it. A lane gives up after 80 % of this time.",
        "DURATION",
    )
    commands_topics: tuple[CommandsTopic, ...] = setting(
        (),
        read.commands_topics,
        "Topics to read commands from, each with its dialect: native, json, karafka, etf1, skyuk or light4j. Default: "
        "{app id}-commands with the dialect native.",
        "TOPIC[:DIALECT],...",
    )
    schema_registry: str | None = setting(
        None,
        read.registry,
        "Schema registry with the schemas of Avro commands (dialects skyuk and light4j). Default: use the schemas that "
        "these projects publish.",
        "http[s]://HOST:PORT",
    )
    schema_registry_subjects: str = setting(
        "topic",
        read.choice("topic", "record", "topic-record"),
        "How to name subjects in the schema registry for tasks from `POST /schedulers`: after the topic, after the "
        "record's full name, or after both. Use the same as your producers. Reading does not need it.",
        "topic|record|topic-record",
    )
    schema_registry_username: str | None = setting(
        None, read.optional(read.text), "User of the schema registry.", "TEXT"
    )
    schema_registry_password: Secret | None = setting(
        None, read.optional(read.secret), "Password for the schema registry.", SECRET
    )
    schema_registry_password_file: Path | None = setting(
        None,
        read.optional(read.path),
        "File that holds the password for the schema registry. It is read again when it changes.",
        "PATH",
    )
    payload_decoder: str | None = setting(
        None,
        read.optional(read.import_path),
        "Function that decodes payloads for the dashboard and for `?decoded=true` over HTTP. It is called with the "
        "payload, its headers and the target topic, in its own process.",
        "PACKAGE.MODULE:FUNCTION",
    )
    payload_schemas: Path | None = setting(
        None,
        read.optional(read.path),
        "Folder with Avro schemas (*.avsc) of payloads in single-object encoding, for the dashboard and for "
        "`?decoded=true` over HTTP. The worker finds new files without a restart.",
        "PATH",
    )
    masked_fields: tuple[str, ...] = setting(
        (),
        read.masked_fields,
        "Fields of payloads, and headers, whose values are masked over HTTP and in the dashboard: names (password, "
        "*_token), or paths from the outermost object (card.number). Only tokens with the role `write` get the payload "
        "as it was sent.",
        "NAME,PATH,...",
    )
    standby_replicas: int = setting(
        0,
        read.integer(0, 32),
        "Number of warm standby copies of each partition on other workers, for a quick takeover.",
        "N",
    )
    rebuild_processes: int = setting(
        2,
        read.integer(0, 64),
        "How many partitions to rebuild from Kafka at the same time. A separate process rebuilds each large one. "
        "0: the worker rebuilds all of them itself, next to its other work. Several `processes` share this number, "
        "with at least 1 each.",
        "N",
    )
    instance_id: str | None = setting(
        None,
        read.optional_kafka_name,
        "Name of this worker, for static membership: a restart within `session_timeout` moves no partition.",
        "TEXT",
    )
    probe_interval: int = setting(
        0,
        read.interval(1_000),
        "How often to probe each partition: the worker sends its own schedule through the whole path and measures "
        "how long it takes. Results are in `/live`, `/info` and the metrics, and nowhere else. 0 turns this off.",
        "DURATION",
    )
    tracing: bool = setting(
        False,
        read.truth,
        "Send spans of commands and firings that belong to a trace (header `traceparent`) to OpenTelemetry. Set the "
        "destination in its own variables, such as `OTEL_EXPORTER_OTLP_ENDPOINT`. Needs the extra `tracing`.",
        "true|false",
    )
    max_clock_skew: int = setting(
        1_000,
        read.duration(1),
        "Maximum difference between the clocks of worker and broker. Above it, the worker logs a warning.",
        "DURATION",
    )
    max_payload_bytes: int = setting(1_000_000, read.integer(1, 100_000_000), "Maximum size of a payload.", "BYTES")
    max_id_bytes: int = setting(
        512,
        read.integer(1, 10_000),
        "Maximum length of the id of a new schedule, in bytes of UTF-8. Pending schedules with longer ids can still be "
        "changed.",
        "BYTES",
    )
    max_pending_per_partition: int = setting(
        0,
        read.integer(0, 10**12),
        "Maximum number of pending schedules of a partition of a commands topic. Above it, new schedules are rejected; "
        "those that are pending can still be updated. 0: no limit.",
        "N",
    )
    delays: tuple[DelayRule, ...] = setting(
        (),
        read.delays,
        "Delay rules: forward every record of a topic to another topic, a fixed time after its timestamp. In the file "
        "also as tables `[delays.NAME]` with `source`, `delay` and `target`. `light-scheduler delays add` adds more "
        "while workers run.",
        "NAME=SOURCE:DELAY:TARGET,...",
    )
    tenant_weights: tuple[tuple[str, int], ...] = setting(
        (),
        read.by_tenant("weight", read.integer(1, MAX_WEIGHT)),
        "Share of each tenant when several tenants have more due than a worker can deliver at once. Tenants without a "
        "weight have weight 1.",
        "TENANT:WEIGHT,...",
    )
    firing_rate: float | None = setting(
        None,
        read.rate,
        "Maximum number of firings per second over all tenants and commands topics. Partitions share it evenly, and "
        "lend what they do not need. Firings above it wait.",
        "N|unlimited",
    )
    tenant_firing_rates: tuple[tuple[str, float | None], ...] = setting(
        (),
        read.by_tenant("rate", read.rate, others=True),
        "Maximum number of firings per second for each tenant. `*` stands for every tenant that is not named.",
        "TENANT:N|unlimited,...",
    )
    log_level: str = setting(
        "INFO", read.choice("DEBUG", "INFO", "WARNING", "ERROR"), "Minimum level to log.", "DEBUG|INFO|WARNING|ERROR"
    )
    log_format: str = setting(
        "text", read.choice("text", "json"), "Format of the log: text, or one JSON object per line.", "text|json"
    )

    def origin(self, name: str) -> Origin:
        """Return the source of a setting's value."""
        return self.origins.get(name, "default")

    @property
    def origins(self) -> Mapping[str, Origin]:
        """The sources of values that are not defaults, if they were recorded (`from_origins`)."""
        noted: Mapping[str, Origin] = self.__dict__.get("_origins", {})
        return noted

    def from_origins(self, origins: Mapping[str, Origin]) -> Settings:
        """Return the same settings with the sources of their values. Copies with `replace` lose them."""
        noted = replace(self)
        object.__setattr__(noted, "_origins", dict(origins))
        return noted

    @property
    def topics(self) -> TopicNames:
        return TopicNames(self.app_id)

    @property
    def bootstrap_servers(self) -> str:
        """The brokers in the format of clients: `host:port,host:port`."""
        return self.broker.removeprefix("kafka://")

    @property
    def security(self) -> KafkaSecurity:
        """The login to Kafka. Raises ConfigurationError if its settings do not fit together."""
        return KafkaSecurity(**{name: getattr(self, name) for name in SECURITY_SETTINGS})

    @property
    def connection(self) -> Connection:
        """The brokers and the login to them, for Kafka clients."""
        return Connection(self.bootstrap_servers, self.security)

    @property
    def registry(self) -> RegistryAccess | None:
        """The schema registry, if configured. Raises ConfigurationError if its settings do not fit together."""
        login = (self.schema_registry_username, self.schema_registry_password, self.schema_registry_password_file)
        if self.schema_registry is not None:
            return RegistryAccess(self.schema_registry, *login)
        if any(part is not None for part in login):
            raise ConfigurationError("schema_registry", "is not set, but the login of a schema registry is")
        return None

    @property
    def http_security(self) -> HttpSecurity:
        """TLS of the HTTP server and its clients. Raises ConfigurationError if its settings do not fit together."""
        return HttpSecurity(**{name: getattr(self, name) for name in HTTP_SECURITY_SETTINGS})

    @property
    def web_url(self) -> str:
        """The address of the HTTP server: `http[s]://host:port`, with brackets around an IPv6 address."""
        host = f"[{self.web_host}]" if ":" in self.web_host else self.web_host
        return f"{'http' if self.web_ssl_certificate is None else 'https'}://{host}:{self.web_port}"

    @property
    def oidc(self) -> IdentityProvider | None:
        """The identity provider, if configured. Raises ConfigurationError if its settings do not fit together."""
        if self.oidc_issuer is None:
            for name in ("oidc_audience", "oidc_jwks_url", "oidc_roles"):
                if getattr(self, name):
                    raise ConfigurationError("oidc_issuer", f"is not set, but {name} is: set it, or remove {name}")
            return None
        if self.oidc_audience is None:
            raise ConfigurationError(
                "oidc_audience",
                "is not set: tokens that oidc_issuer made for other services would be accepted. Set it to the "
                "audience of your tokens",
            )
        if not self.oidc_roles:
            raise ConfigurationError(
                "oidc_roles", "is not set: no token of oidc_issuer would have a role. Set it, such as admins:admin"
            )
        return IdentityProvider(
            self.oidc_issuer,
            self.oidc_audience,
            self.oidc_jwks_url,
            self.oidc_role_claim,
            dict(self.oidc_roles),
            self.oidc_tenant_claim,
        )

    @property
    def web_token(self) -> Secret | None:
        """The token that the command line sends to workers. Raises ConfigurationError if it cannot be read."""
        if self.token is None and self.token_file is None:
            return None
        return Secret(secret_of("token", self.token, self.token_file))

    @property
    def inputs(self) -> tuple[CommandsTopic, ...]:
        """The commands topics."""
        return self.commands_topics or (CommandsTopic(self.topics.commands, "native"),)

    @property
    def own_inputs(self) -> tuple[CommandsTopic, ...]:
        """The commands topics with our own dialects, which accept bulk commands."""
        return tuple(source for source in self.inputs if source.dialect in OWN_DIALECTS)

    @property
    def default_input(self) -> CommandsTopic:
        """The topic for commands about schedules that are pending nowhere: the first native one, else the first of our
        own dialects, else the first. Every dialect reads the JSON form."""
        native = (source for source in self.inputs if source.dialect == "native")
        return next(native, (self.own_inputs or self.inputs)[0])

    @property
    def shares(self) -> Shares:
        """The shares and caps of tenants."""
        return Shares(dict(self.tenant_weights), self.firing_rate, dict(self.tenant_firing_rates))

    @property
    def internal_topics(self) -> frozenset[str]:
        """The topics to which only workers or brokers write. They cannot be targets of schedules."""
        names = self.topics
        return KAFKA_TOPICS | frozenset(
            {names.history, names.dead_letters, names.forecast, names.tenants, names.delays, names.delay_positions}
            | {names.loads}
            | {names.changelog(source.name) for source in self.inputs}
            | self.states_topics
        )

    @property
    def states_topics(self) -> frozenset[str]:
        """The internal topics for Karafka's Web UI. Workers do not need them."""
        return frozenset(karafka_states_topic(source.name) for source in self.inputs if source.dialect == "karafka")

    @property
    def answers_only(self) -> frozenset[str]:
        """The internal topics that accept results of commands. They cannot be targets of schedules."""
        return frozenset({self.topics.idempotency})

    @property
    def commands_only(self) -> frozenset[str]:
        """The commands topics. Results of commands cannot go there."""
        return frozenset(source.name for source in self.inputs)

    @property
    def reserved_topics(self) -> frozenset[str]:
        """The application's own topics, including its commands topics. Delay rules cannot use them."""
        return self.internal_topics | self.answer_topics | self.commands_only

    @property
    def answer_topics(self) -> frozenset[str]:
        """The application's topics to which commands can send their results, and which are not commands topics."""
        return frozenset({self.topics.results, self.topics.idempotency})
