"""Settings: one declaration is the source of names, defaults, help texts and documentation.

An explicit option beats the environment (`LIGHT_SCHEDULER_<NAME>`), which beats `light-scheduler.toml`, which beats the
default. An unknown name or a bad value is refused with its name.
"""

from __future__ import annotations

import difflib
import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from light_scheduler.connection import Connection, HttpSecurity, KafkaSecurity, Secret
from light_scheduler.connection.http_security import CLIENT_AUTH
from light_scheduler.connection.identity_provider import ROLES, IdentityProvider
from light_scheduler.connection.logins import secret_of
from light_scheduler.connection.registry import RegistryAccess
from light_scheduler.connection.security import MECHANISMS, PROTOCOLS
from light_scheduler.durations import format_duration, parse_typed_duration
from light_scheduler.errors import ConfigurationError
from light_scheduler.host.loopback import is_loopback
from light_scheduler.model.delay import DelayRule, RuleError, check_rule, parse_rule
from light_scheduler.model.tenant import MAX_WEIGHT, OTHERS, TENANT_NAME, Shares
from light_scheduler.model.topics import TopicNames

ENVIRONMENT_PREFIX = "LIGHT_SCHEDULER_"
SETTINGS_FILE = "light-scheduler.toml"

# Kafka's rule for topic names, and for the names of group members too.
MOST_NAME = 249
_KAFKA_NAME = re.compile(rf"(?!\.{{1,2}}$)[A-Za-z0-9._-]{{1,{MOST_NAME}}}")
_HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252}[A-Za-z0-9_.])?")
_SERVER = re.compile(r"(\[[0-9A-Fa-f:]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})", re.ASCII)

MOST_PORT = 65_535
AUTO = "auto"

COMPATIBLE_DIALECTS = ("karafka", "etf1", "skyuk", "light4j")
DIALECTS = ("native", "json", *COMPATIBLE_DIALECTS)
"""The forms that commands may come in; the compatible ones are those of other schedulers."""


@dataclass(frozen=True)
class CommandsTopic:
    """A topic that commands come in on, and the dialect they are written in."""

    name: str
    dialect: str


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("must not be empty")
    return value


def _host(value: Any) -> str:
    """Read a host name or an IP address; an IPv6 address may be in brackets."""
    name = _text(value)
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    if not _HOST_NAME.fullmatch(name) and not _is_address(name):
        raise ValueError(f"{value!r} must be a host name or an IP address, without a port")
    return name


def reachable_host(value: Any) -> str:
    """Read a host that other workers can connect to. Raises ValueError."""
    name = _host(value)
    # As the system reads them: `0` and `0.0` are 0.0.0.0 too.
    if name.strip("0.") == "" or (_is_address(name) and ip_address(name).is_unspecified):
        raise ValueError(
            f"{value!r} is not an address that other workers can reach; set the address or host name of this machine "
            "that they connect to"
        )
    return name


def _hosts(value: Any) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError(f"{value!r} must be HOST,HOST,... or a list of hosts")
    return tuple(_host(item.strip()) for item in items if item.strip())


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _kafka_name(value: Any) -> str:
    if not isinstance(value, str) or not _KAFKA_NAME.fullmatch(value):
        raise ValueError(f"{value!r} must be 1 to 249 letters, digits, '.', '_' and '-', like the name of a topic")
    return value


def _integer(lowest: int, highest: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        try:
            number = int(value) if not isinstance(value, float) else None
        except (TypeError, ValueError):
            number = None
        if number is None or isinstance(value, bool) or not lowest <= number <= highest:
            raise ValueError(f"{value!r} must be a whole number from {lowest} to {highest}")
        return number

    return parse


def _duration(lowest: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        duration = parse_typed_duration(str(value))
        if duration < lowest:
            raise ValueError(f"{value!r} must be at least {format_duration(lowest)}")
        return duration

    return parse


def _choice(*choices: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"{value!r} must be one of {', '.join(choices)}")
        return str(value)

    return parse


def _optional(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Read a setting that an empty text leaves unset."""
    return lambda value: None if value == "" else parse(value)


def _secret(value: Any) -> Secret:
    if not isinstance(value, str):  # what it is instead is not repeated: it may be a secret all the same
        raise ValueError("must be text")
    return Secret(value)


def _truth(value: Any) -> bool:
    if str(value).lower() not in ("true", "false"):
        raise ValueError(f"{value!r} must be true or false")
    return str(value).lower() == "true"


def _processes(value: Any) -> int | str:
    return AUTO if value == AUTO else _integer(1, 1_000)(value)


def _lookback(value: Any) -> int | None:
    return None if value == "all" else _integer(0, 10_000_000)(value)


def _broker(value: Any) -> str:
    servers = _text(value).removeprefix("kafka://")
    for server in servers.split(","):
        match = _SERVER.fullmatch(server)
        if match is None or not 1 <= int(match["port"]) <= MOST_PORT:
            raise ValueError(f"{value!r} must be kafka://host:port[,host:port...]")
    return f"kafka://{servers}"


def _path(value: Any) -> Path:
    path = Path(_text(str(value) if isinstance(value, Path) else value))
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ValueError(f"{value!r}: this home folder does not exist") from error


def _commands_topics(value: Any) -> tuple[CommandsTopic, ...]:
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError(f"{value!r} must be TOPIC[:DIALECT],... or a list of such texts")
    topics = []
    for item in filter(None, (item.strip() for item in items)):
        name, colon, dialect = item.partition(":")
        if colon and not dialect:
            raise ValueError(f"{item!r} has no dialect after the colon: use one of {', '.join(DIALECTS)}")
        topics.append(CommandsTopic(_kafka_name(name), _dialect(item, dialect or "native")))
    if len({topic.name for topic in topics}) < len(topics):
        raise ValueError("a topic is given twice: give each topic once")
    return tuple(topics)


def _registry(value: Any) -> str | None:
    if value is None or value == "":
        return None
    address = _text(value)
    try:
        parts = urlsplit(address)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        has_login = "@" in parts.netloc
    except ValueError:
        is_address = has_login = False
    if not is_address:
        raise ValueError(
            "must be the address of a schema registry: http[s]://HOST:PORT"
        )  # a password in it is not shown
    if has_login:
        raise ValueError("must not have a login in it: set schema_registry_username and schema_registry_password")
    return address.rstrip("/")


def _provider_url(value: Any) -> str:
    address = _text(value)
    parts = urlsplit(address)
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname))):
        raise ValueError(f"{value!r} must be https://... ; http:// is accepted on this machine only")
    return address


def _oidc_roles(value: Any) -> tuple[tuple[str, str], ...]:
    if isinstance(value, dict):
        pairs = [(name, str(role)) for name, role in value.items()]
    else:
        texts = value.split(",") if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"{value!r} must be VALUE:ROLE,..., a list of such texts, or a table")
        pairs = [(name.strip(), role.strip()) for name, _, role in (text.rpartition(":") for text in texts if text)]
    for name, role in pairs:
        if not name or role not in ROLES:
            raise ValueError(f"{name}:{role} must be VALUE:ROLE, with a role of {', '.join(ROLES)}")
    return tuple(pairs)


def _dialect(item: str, name: str) -> str:
    if name not in DIALECTS:
        near = difflib.get_close_matches(name, DIALECTS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"{item!r}: dialect {name!r} is unknown{hint or '.'} Use one of {', '.join(DIALECTS)}")
    return name


def _optional_kafka_name(value: Any) -> str | None:
    return None if value == "" else _kafka_name(value)


def _delays(value: Any) -> tuple[DelayRule, ...]:
    """Read `name=source:delay:target,...`, a list of such texts, or a table of tables."""
    if isinstance(value, dict):
        items = [_delay_table(name, table) for name, table in value.items()]
    else:
        texts = value.split(",") if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"{value!r} must be NAME=SOURCE:DELAY:TARGET,..., a list of such texts, or tables")
        items = [_delay_text(text.strip()) for text in texts if text.strip()]
    rules: dict[str, DelayRule] = {}
    for name, source, delay, target in items:
        if name in rules:
            raise ValueError(f"rule {name} is given twice: give each rule once")
        try:
            rules[name] = parse_rule(name, source, delay, target, read=parse_typed_duration)
        except RuleError as error:
            raise ValueError(f"rule {name}: {error}") from None
    return tuple(rules.values())


def _delay_text(text: str) -> tuple[str, str, str, str]:
    name, _, route = text.partition("=")
    parts = [part.strip() for part in route.split(":")]
    if len(parts) != 3:
        raise ValueError(f"{text!r} must be NAME=SOURCE:DELAY:TARGET")
    return name.strip(), *parts  # type: ignore[return-value]  # there are three


def _delay_table(name: str, table: Any) -> tuple[str, str, str, str]:
    if not isinstance(table, dict) or table.keys() != {"source", "delay", "target"}:
        raise ValueError(f"rule {name} must have source, delay and target, and nothing else")
    return name, *(str(table[part]) for part in ("source", "delay", "target"))  # type: ignore[return-value]


def _rate(value: Any) -> float | None:
    if value == "unlimited":
        return None
    try:
        rate = float("nan" if isinstance(value, bool) else value)
    except (TypeError, ValueError):
        rate = math.nan
    if not 0.001 <= rate <= 1e9:
        raise ValueError(f"{value!r} must be a number of firings a second, at least 0.001, or unlimited")
    return rate


def _by_tenant(
    what: str, parse: Callable[[Any], Any], *, others: bool = False
) -> Callable[[Any], tuple[tuple[str, Any], ...]]:
    """Read `tenant:value,...`, a list of such texts, or a table of tenants; with `others`, `*` is one, too."""

    def parse_all(value: Any) -> tuple[tuple[str, Any], ...]:
        if isinstance(value, dict):
            items = list(value.items())
        else:
            texts = value.split(",") if isinstance(value, str) else value
            if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                raise ValueError(f"{value!r} must be TENANT:{what.upper()},..., a list of such texts, or a table")
            pairs = (text.partition(":") for text in texts if text.strip())
            items = [(tenant.strip(), text.strip()) for tenant, _, text in pairs]
        found: dict[str, Any] = {}
        for tenant, text in items:
            if not TENANT_NAME.fullmatch(tenant) and not (others and tenant == OTHERS):
                raise ValueError(f"{tenant!r} is not a tenant name: use 1 to 64 letters, digits, '.', '_' and '-'")
            if tenant in found:
                raise ValueError(f"tenant {tenant} is given twice: give each tenant once")
            try:
                found[tenant] = parse(text)
            except ValueError as error:
                raise ValueError(f"the {what} of tenant {tenant}: {error}") from None
        return tuple(found.items())

    return parse_all


def _setting(default: Any, parse: Callable[[Any], Any], help: str, syntax: str) -> Any:
    return field(default=default, metadata={"parse": parse, "help": help, "syntax": syntax})


def is_secret(setting: Field[Any]) -> bool:
    """Tell whether a setting holds a secret: it is no option, since anybody on the machine may list those (`ps`)."""
    return bool(setting.metadata["syntax"] == SECRET)


SECRET = "SECRET"  # noqa: S105 - how help texts write one

KAFKA_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})
"""Kafka's own: a client that writes to one of them does damage, or fails for ever."""


SECURITY_SETTINGS = tuple(setting.name for setting in fields(KafkaSecurity))
"""The settings that say how Kafka is logged in to."""

HTTP_SECURITY_SETTINGS = tuple(setting.name for setting in fields(HttpSecurity))
"""The settings of TLS between workers and those who ask them."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of a worker and of the tools around it. Durations are ms."""

    app_id: str = _setting(
        "light-scheduler",
        _kafka_name,
        "Application id. It is the prefix of every topic and the consumer group of the workers.",
        "TEXT",
    )
    broker: str = _setting(
        "kafka://127.0.0.1:9092", _broker, "Kafka brokers to connect to first.", "kafka://HOST:PORT[,HOST:PORT...]"
    )
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = _setting(
        "PLAINTEXT",
        _choice(*PROTOCOLS),
        "How to connect to Kafka: with TLS (SSL), a login (SASL_PLAINTEXT), both (SASL_SSL), or neither (PLAINTEXT).",
        "|".join(PROTOCOLS),
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None = _setting(
        None, _optional(_choice(*MECHANISMS)), "How to log in to Kafka.", "|".join(MECHANISMS)
    )
    sasl_username: str | None = _setting(None, _optional(_text), "User for PLAIN and SCRAM.", "TEXT")
    sasl_password: Secret | None = _setting(None, _optional(_secret), "Password for PLAIN and SCRAM.", SECRET)
    sasl_password_file: Path | None = _setting(
        None,
        _optional(_path),
        "File that holds the password for PLAIN and SCRAM. It is read again when it changes.",
        "PATH",
    )
    sasl_oauth_token_url: str | None = _setting(
        None, _optional(_text), "Token endpoint for OAUTHBEARER: https://...", "URL"
    )
    sasl_oauth_client_id: str | None = _setting(None, _optional(_text), "Client id for OAUTHBEARER.", "TEXT")
    sasl_oauth_client_secret: Secret | None = _setting(
        None, _optional(_secret), "Client secret for OAUTHBEARER.", SECRET
    )
    sasl_oauth_client_secret_file: Path | None = _setting(
        None,
        _optional(_path),
        "File that holds the client secret for OAUTHBEARER. It is read again when it changes.",
        "PATH",
    )
    sasl_oauth_scope: str | None = _setting(
        None, _optional(_text), "Scopes to request with OAUTHBEARER, separated by spaces.", "TEXT"
    )
    ssl_ca: Path | None = _setting(
        None,
        _optional(_path),
        "PEM file with the certificates of the authorities that sign the brokers' certificates. Default: the "
        "authorities that the system trusts.",
        "PATH",
    )
    ssl_certificate: Path | None = _setting(
        None, _optional(_path), "PEM file with the certificate of this client, for mutual TLS.", "PATH"
    )
    ssl_key: Path | None = _setting(
        None,
        _optional(_path),
        "PEM file with the key of `ssl_certificate`. Needed if the certificate file does not hold the key.",
        "PATH",
    )
    ssl_key_password: Secret | None = _setting(None, _optional(_secret), "Password of the private key.", SECRET)
    ssl_key_password_file: Path | None = _setting(
        None, _optional(_path), "File that holds the password of the private key.", "PATH"
    )
    ssl_check_hostname: bool = _setting(
        True,
        _truth,
        "Check that the certificate of a broker names the host that the client connects to.",
        "true|false",
    )
    data_dir: Path = _setting(
        Path("light-scheduler-data"),
        _path,
        "Folder for local state. You can delete it while the worker is stopped: it is rebuilt from Kafka.",
        "PATH",
    )
    web_host: str = _setting(
        "127.0.0.1",
        reachable_host,
        "Address of the HTTP server. The other workers must be able to reach it, so 0.0.0.0 does not work.",
        "HOST",
    )
    web_port: int = _setting(6066, _integer(1, MOST_PORT), "Port of the HTTP server.", "PORT")
    processes: int | Literal["auto"] = _setting(
        1,
        _processes,
        "Number of worker processes that `light-scheduler worker` runs on this machine, behind one HTTP port; auto: "
        "one per core. If more than one, process N has the folder N in `data_dir`, the name `instance_id`-N in the "
        "group (default: named after the HTTP address), and the port `web_port` + 1 + N for the other workers.",
        "N|auto",
    )
    web_allowed_hosts: tuple[str, ...] = _setting(
        (),
        _hosts,
        "More host names to answer requests for, such as the name of a proxy or a Kubernetes service. The server "
        "always answers requests for web_host, for localhost, and for the address at which they arrive.",
        "HOST,...",
    )
    web_ssl_certificate: Path | None = _setting(
        None,
        _optional(_path),
        "PEM file with the certificate of the HTTP server, followed by those of intermediate authorities. With it, the "
        "server speaks HTTPS only. Workers and the command line show it to servers that want a client certificate.",
        "PATH",
    )
    web_ssl_key: Path | None = _setting(
        None,
        _optional(_path),
        "PEM file with the key of `web_ssl_certificate`. Needed if the certificate file does not hold the key.",
        "PATH",
    )
    web_ssl_key_password: Secret | None = _setting(
        None, _optional(_secret), "Password of the key of `web_ssl_certificate`.", SECRET
    )
    web_ssl_key_password_file: Path | None = _setting(
        None, _optional(_path), "File that holds the password of the key of `web_ssl_certificate`.", "PATH"
    )
    web_ssl_ca: Path | None = _setting(
        None,
        _optional(_path),
        "PEM file with the certificates of the authorities that sign the certificates of HTTP servers, for workers and "
        "the command line. Default: the authorities that the system trusts.",
        "PATH",
    )
    web_ssl_client_ca: Path | None = _setting(
        None,
        _optional(_path),
        "PEM file with the certificates of the authorities that sign the certificates of clients of the HTTP server.",
        "PATH",
    )
    web_ssl_client_auth: Literal["none", "requested", "required"] = _setting(
        "none",
        _choice(*CLIENT_AUTH),
        "Whether clients of the HTTP server must show a certificate (mutual TLS). requested: it is checked if there is "
        "one.",
        "|".join(CLIENT_AUTH),
    )
    insecure: bool = _setting(
        False,
        _truth,
        "Start also if other machines can reach the HTTP server and it asks nobody for a token.",
        "true|false",
    )
    token: Secret | None = _setting(None, _optional(_secret), "Token that the command line sends to workers.", SECRET)
    token_file: Path | None = _setting(
        None,
        _optional(_path),
        "File that holds the token that the command line sends to workers. It is read again when it changes.",
        "PATH",
    )
    oidc_issuer: str | None = _setting(
        None,
        _optional(_provider_url),
        "Issuer whose JSON Web Tokens the HTTP server accepts (OpenID Connect). With it, every request needs a token.",
        "URL",
    )
    oidc_audience: str | None = _setting(
        None, _optional(_text), "Audience (`aud`) that the tokens of `oidc_issuer` must have.", "TEXT"
    )
    oidc_jwks_url: str | None = _setting(
        None,
        _optional(_provider_url),
        "Where the public keys of `oidc_issuer` are. Default: its discovery document says so.",
        "URL",
    )
    oidc_role_claim: str = _setting(
        "roles", _text, "Claim with the roles of whoever has the token. A path has dots: realm_access.roles.", "TEXT"
    )
    oidc_roles: tuple[tuple[str, str], ...] = _setting(
        (),
        _oidc_roles,
        "What values of `oidc_role_claim` stand for. The highest one counts.",
        "VALUE:metrics|read|write|admin,...",
    )
    oidc_tenant_claim: str = _setting(
        "tenants", _text, "Claim with the tenants of whoever has the token. `*` in it stands for all tenants.", "TEXT"
    )
    partitions: int = _setting(
        4,
        _integer(1, 10_000),
        "Partitions of the topics that `topics create` creates. More workers than partitions do not help.",
        "N",
    )
    replication_factor: int = _setting(
        1, _integer(1, 32), "Replicas of the topics that `topics create` creates. Use 3 in production.", "N"
    )
    lookback_minutes: int | None = _setting(
        None,
        _lookback,
        "How many minutes a firing may be overdue and still be delivered. See `missed` for older firings.",
        "N|all",
    )
    missed: Literal["fire", "dead-letter"] = _setting(
        "dead-letter",
        _choice("fire", "dead-letter"),
        "What to do with a firing that is overdue by more than `lookback_minutes`: deliver it, or dead-letter it.",
        "fire|dead-letter",
    )
    delivery_retries: int = _setting(
        1,
        _integer(0, 100_000),
        "How often to retry a firing that its target refuses, once a minute, before it becomes a dead letter.",
        "N",
    )
    tick: int = _setting(
        1_000, _duration(10), "Maximum time between two scans of a partition for due firings.", "DURATION"
    )
    stage_ahead: int = _setting(
        70,
        _duration(0),
        "How long before a full second to prepare its firings, so that only the commit is left; 0 turns this off. "
        "Consumers that read uncommitted records see these firings early. At most half of `transaction_timeout`.",
        "DURATION",
    )
    session_timeout: int = _setting(
        6_000,
        _duration(1_000),
        "How long a worker can be silent before the broker gives its partitions to other workers.",
        "DURATION",
    )
    transaction_timeout: int = _setting(
        10_000,
        _duration(2_000),
        "How long a transaction can take before the broker aborts it. A lane gives up after 80 % of this time.",
        "DURATION",
    )
    commands_topics: tuple[CommandsTopic, ...] = _setting(
        (),
        _commands_topics,
        "Topics to read commands from, each with its dialect: native, json, karafka, etf1, skyuk or light4j. Default: "
        "{app id}-commands with the dialect native.",
        "TOPIC[:DIALECT],...",
    )
    schema_registry: str | None = _setting(
        None,
        _registry,
        "Schema registry with the schemas of Avro commands (dialects skyuk and light4j). Default: use the schemas that "
        "these projects publish.",
        "http[s]://HOST:PORT",
    )
    schema_registry_username: str | None = _setting(None, _optional(_text), "User of the schema registry.", "TEXT")
    schema_registry_password: Secret | None = _setting(
        None, _optional(_secret), "Password for the schema registry.", SECRET
    )
    schema_registry_password_file: Path | None = _setting(
        None,
        _optional(_path),
        "File that holds the password for the schema registry. It is read again when it changes.",
        "PATH",
    )
    standby_replicas: int = _setting(
        0,
        _integer(0, 32),
        "Number of warm standby copies of each partition on other workers, for a quick takeover.",
        "N",
    )
    rebuild_processes: int = _setting(
        2,
        _integer(0, 64),
        "How many partitions to rebuild from Kafka at the same time. A large one is rebuilt by a separate process. "
        "0: the worker rebuilds all of them itself, next to its other work. Several `processes` share this number, "
        "with at least 1 each.",
        "N",
    )
    instance_id: str | None = _setting(
        None,
        _optional_kafka_name,
        "Name of this worker, for static membership: a restart within `session_timeout` moves no partition.",
        "TEXT",
    )
    max_clock_skew: int = _setting(
        1_000,
        _duration(1),
        "Difference between the clocks of worker and broker from which the worker warns.",
        "DURATION",
    )
    max_payload_bytes: int = _setting(1_000_000, _integer(1, 100_000_000), "Maximum size of a payload.", "BYTES")
    max_id_bytes: int = _setting(
        512, _integer(1, 10_000), "Maximum length of a schedule id, in bytes of UTF-8.", "BYTES"
    )
    delays: tuple[DelayRule, ...] = _setting(
        (),
        _delays,
        "Delay rules: forward every record of a topic to another topic, a fixed time after its timestamp. In the file "
        "also as tables `[delays.NAME]` with `source`, `delay` and `target`. `light-scheduler delays add` adds more "
        "while workers run.",
        "NAME=SOURCE:DELAY:TARGET,...",
    )
    tenant_weights: tuple[tuple[str, int], ...] = _setting(
        (),
        _by_tenant("weight", _integer(1, MAX_WEIGHT)),
        "Share of each tenant while several tenants have more due than a worker can deliver at once. Tenants that are "
        "not named have weight 1.",
        "TENANT:WEIGHT,...",
    )
    firing_rate: float | None = _setting(
        None,
        _rate,
        "Maximum number of firings a second for each commands topic, all tenants together. Its partitions share it "
        "evenly. Firings above it wait.",
        "N|unlimited",
    )
    tenant_firing_rates: tuple[tuple[str, float | None], ...] = _setting(
        (),
        _by_tenant("rate", _rate, others=True),
        "Maximum number of firings a second of each tenant. `*` stands for every tenant that is not named.",
        "TENANT:N|unlimited,...",
    )
    log_level: str = _setting(
        "INFO", _choice("DEBUG", "INFO", "WARNING", "ERROR"), "Minimum level to log.", "DEBUG|INFO|WARNING|ERROR"
    )
    log_format: str = _setting(
        "text", _choice("text", "json"), "Format of the log: text, or one JSON object per line.", "text|json"
    )

    @property
    def topics(self) -> TopicNames:
        return TopicNames(self.app_id)

    @property
    def bootstrap_servers(self) -> str:
        """The brokers as clients take them: `host:port,host:port`."""
        return self.broker.removeprefix("kafka://")

    @property
    def security(self) -> KafkaSecurity:
        """How Kafka is logged in to. Raises ConfigurationError if the settings of that do not fit together."""
        return KafkaSecurity(**{name: getattr(self, name) for name in SECURITY_SETTINGS})

    @property
    def connection(self) -> Connection:
        """The brokers and how to log in to them: what Kafka clients are made with."""
        return Connection(self.bootstrap_servers, self.security)

    @property
    def registry(self) -> RegistryAccess | None:
        """The schema registry, if there is one. Raises ConfigurationError if the settings of its login do not fit."""
        login = (self.schema_registry_username, self.schema_registry_password, self.schema_registry_password_file)
        if self.schema_registry is not None:
            return RegistryAccess(self.schema_registry, *login)
        if any(part is not None for part in login):
            raise ConfigurationError("schema_registry", "is not set, but the login of a schema registry is")
        return None

    @property
    def http_security(self) -> HttpSecurity:
        """TLS between workers and those who ask them. Raises ConfigurationError if its settings do not fit together."""
        return HttpSecurity(**{name: getattr(self, name) for name in HTTP_SECURITY_SETTINGS})

    @property
    def web_url(self) -> str:
        """The address of the HTTP server: `http[s]://host:port`, with brackets around an IPv6 address."""
        host = f"[{self.web_host}]" if ":" in self.web_host else self.web_host
        return f"{'http' if self.web_ssl_certificate is None else 'https'}://{host}:{self.web_port}"

    @property
    def oidc(self) -> IdentityProvider | None:
        """The identity provider, if there is one. Raises ConfigurationError if its settings do not fit together."""
        if self.oidc_issuer is None:
            for name in ("oidc_audience", "oidc_jwks_url", "oidc_roles"):
                if getattr(self, name):
                    raise ConfigurationError("oidc_issuer", f"is not set, but {name} is")
            return None
        if self.oidc_audience is None:
            raise ConfigurationError("oidc_audience", "is not set, and oidc_issuer needs it: any token would do")
        if not self.oidc_roles:
            raise ConfigurationError("oidc_roles", "is not set, and oidc_issuer needs it: nobody would have a role")
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
        """What the command line sends to workers to be let in. Raises ConfigurationError if it cannot be read."""
        if self.token is None and self.token_file is None:
            return None
        return Secret(secret_of("token", self.token, self.token_file))

    @property
    def inputs(self) -> tuple[CommandsTopic, ...]:
        """The topics that commands come in on."""
        return self.commands_topics or (CommandsTopic(self.topics.commands, "native"),)

    @property
    def shares(self) -> Shares:
        """What tenants may have of what workers deliver."""
        return Shares(dict(self.tenant_weights), self.firing_rate, dict(self.tenant_firing_rates))

    @property
    def internal_topics(self) -> frozenset[str]:
        """The topics that only workers or brokers write: no schedule may aim at them."""
        names = self.topics
        return KAFKA_TOPICS | frozenset(
            {names.history, names.dead_letters, names.forecast, names.tenants, names.delays, names.delay_positions}
            | {names.loads}
            | {names.changelog(source.name) for source in self.inputs}
        )

    @property
    def answers_only(self) -> frozenset[str]:
        """The internal topics that take results of commands: no schedule may aim at them."""
        return frozenset({self.topics.idempotency})

    @property
    def reserved_topics(self) -> frozenset[str]:
        """The application's own topics, those that it reads included: no delay rule may touch them."""
        return self.internal_topics | self.answer_topics | {source.name for source in self.inputs}

    @property
    def answer_topics(self) -> frozenset[str]:
        """The application's topics that commands may ask for their results in, and that take no commands."""
        return frozenset({self.topics.results, self.topics.idempotency})


def load_settings(
    options: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Settings:
    """Put settings together from options, the environment and a TOML file.

    Options that are None are not given. Without `file`, `light-scheduler.toml` is read if it is in the current folder.
    Raises ConfigurationError naming an unknown or bad setting.
    """
    known = {setting.name: setting for setting in fields(Settings)}
    values: dict[str, Any] = {}
    for name, value in _from_file(file).items():
        values[name] = _parse(known, name, value, origin=name)
    for variable, value in (os.environ if environment is None else environment).items():
        if variable.startswith(ENVIRONMENT_PREFIX):
            name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
            values[name] = _parse(known, name, value, origin=variable)
    for name, value in (options or {}).items():
        if value is not None:
            values[name] = _parse(known, name, value, origin=option_name(name))
    settings = Settings(**values)
    # Their errors name the setting at fault.
    _ = settings.security, settings.http_security, settings.registry, settings.oidc
    if settings.token is not None and settings.token_file is not None:
        raise ConfigurationError("token", "is set, and so is token_file: remove one of them")
    for source in settings.inputs:
        if source.name in settings.internal_topics | settings.answer_topics:
            raise ConfigurationError(
                "commands_topics", f"{source.name} cannot be a commands topic: workers write to it"
            )
    if settings.stage_ahead > settings.transaction_timeout // 2:
        raise ConfigurationError(
            "stage_ahead",
            f"{format_duration(settings.stage_ahead)} is more than half of transaction_timeout "
            f"({format_duration(settings.transaction_timeout)}): a transaction that begins so early would time out "
            "before it is due",
        )
    for rule in settings.delays:
        try:
            check_rule(rule, settings.delays, settings.reserved_topics)
        except RuleError as error:
            raise ConfigurationError("delays", f"rule {rule.name}: {error}") from None
    return settings


def option_name(setting: str) -> str:
    """Return the command-line spelling of a setting."""
    return "--" + setting.replace("_", "-")


def default_text(setting: Field[Any]) -> str | None:
    """Return a setting's default as it would be given; None if it is not set."""
    value: Any = setting.default
    syntax = setting.metadata["syntax"]
    if value is None:
        return next((word for word in ("all", "unlimited") if word in syntax.split("|")), None)
    if value == ():
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return format_duration(value) if syntax == "DURATION" else str(value)


def _from_file(file: Path | None) -> Mapping[str, Any]:
    path = file or Path(SETTINGS_FILE)
    if file is None and not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(str(path), f"cannot be read: {error}") from error


def _parse(known: Mapping[str, Field[Any]], name: str, value: Any, *, origin: str) -> Any:
    if name not in known:
        similar = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {similar[0]}?" if similar else "."
        raise ConfigurationError(origin, f"is not a setting{hint} Settings: {', '.join(sorted(known))}")
    try:
        return known[name].metadata["parse"](value)
    except ValueError as error:
        raise ConfigurationError(origin, str(error)) from error
