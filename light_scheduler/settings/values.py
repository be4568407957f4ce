"""Parses values of settings, given as text or as TOML values. Each parser raises ValueError with the reason."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from light_scheduler.connection import Secret
from light_scheduler.connection.identity_provider import ROLES
from light_scheduler.connection.urls import has_login
from light_scheduler.durations import format_duration, parse_typed_duration
from light_scheduler.host.loopback import is_loopback
from light_scheduler.model.delay import DelayRule, RuleError, parse_rule
from light_scheduler.model.tenant import OTHERS, TENANT_NAME

# Kafka's rule for names of topics and group members.
MOST_NAME = 249
_KAFKA_NAME = re.compile(rf"(?!\.{{1,2}}$)[A-Za-z0-9._-]{{1,{MOST_NAME}}}")
_HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252}[A-Za-z0-9_.])?")
_IMPORT_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_SERVER = re.compile(r"(\[[0-9A-Fa-f:]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})", re.ASCII)

MOST_PORT = 65_535
AUTO = "auto"

COMPATIBLE_DIALECTS = ("karafka", "etf1", "skyuk", "light4j")
OWN_DIALECTS = ("native", "json")
DIALECTS = (*OWN_DIALECTS, *COMPATIBLE_DIALECTS)
"""The formats of commands. The compatible ones are formats of other schedulers."""


@dataclass(frozen=True)
class CommandsTopic:
    """A commands topic and its dialect."""

    name: str
    dialect: str


def text(value: Any) -> str:
    """Read a non-empty text."""
    if not isinstance(value, str):  # the error does not show the value: a list may contain a login
        raise ValueError("must be text: put it in quotes")
    if not value:
        raise ValueError("must not be empty")
    return value


def host(value: Any) -> str:
    """Read a host name or an IP address. An IPv6 address may be in brackets."""
    name = text(value)
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    if not _HOST_NAME.fullmatch(name) and not _is_address(name):
        raise ValueError(f"{value!r} must be a host name or an IP address, without a port")
    return name


def reachable_host(value: Any) -> str:
    """Read a host that other workers can connect to. Raises ValueError."""
    name = host(value)
    # The system also accepts `0` and `0.0` for 0.0.0.0.
    if name.strip("0.") == "" or (_is_address(name) and ip_address(name).is_unspecified):
        raise ValueError(
            f"{value!r} is not an address that other workers can reach; set the address or host name of this machine "
            "that they connect to"
        )
    return name


def hosts(value: Any) -> tuple[str, ...]:
    """Read `HOST,HOST,...`, or a list of hosts."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError(f"{value!r} must be HOST,HOST,... or a list of hosts")
    return tuple(host(item.strip()) for item in items if item.strip())


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def kafka_name(value: Any) -> str:
    """Read a name that follows Kafka's rule for topic names."""
    if not isinstance(value, str) or not _KAFKA_NAME.fullmatch(value):
        raise ValueError(f"{value!r} must be 1 to 249 letters, digits, '.', '_' and '-', like the name of a topic")
    return value


def integer(lowest: int, highest: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        try:
            number = int(value) if not isinstance(value, float) else None
        except (TypeError, ValueError):
            number = None
        if number is None or isinstance(value, bool) or not lowest <= number <= highest:
            raise ValueError(f"{value!r} must be a whole number from {lowest} to {highest}")
        return number

    return parse


def duration(lowest: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        duration = parse_typed_duration(str(value))
        if duration < lowest:
            raise ValueError(f"{value!r} must be at least {format_duration(lowest)}")
        return duration

    return parse


def interval(lowest: int) -> Callable[[Any], int]:
    """Return a parser for a duration of at least `lowest` ms, or 0."""
    parse = duration(0)

    def parse_interval(value: Any) -> int:
        interval = parse(value)
        if 0 < interval < lowest:
            raise ValueError(f"{value!r} must be at least {format_duration(lowest)}, or 0 to turn it off")
        return interval

    return parse_interval


def choice(*choices: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"{value!r} must be one of {', '.join(choices)}")
        return str(value)

    return parse


def optional(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a parser that returns None for an empty text."""
    return lambda value: None if value == "" else parse(value)


def secret(value: Any) -> Secret:
    """Read a secret. Errors never show it."""
    if not isinstance(value, str):  # the error does not show the value: it may still be a secret
        raise ValueError("must be text")
    if not is_unicode(value):
        raise ValueError("must be text in UTF-8")
    return Secret(value)


def is_unicode(text: str) -> bool:
    """Return whether a text is valid Unicode. Python reads other bytes in the environment as lone surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def truth(value: Any) -> bool:
    """Read true or false."""
    if str(value).lower() not in ("true", "false"):
        raise ValueError(f"{value!r} must be true or false")
    return str(value).lower() == "true"


def processes(value: Any) -> int | str:
    """Read a number of processes, or `auto`."""
    return AUTO if value == AUTO else integer(1, 1_000)(value)


def lookback(value: Any) -> int | None:
    """Read a number of minutes; None for `all`."""
    return None if value == "all" else integer(0, 10_000_000)(value)


def broker(value: Any) -> str:
    """Read `[kafka://]HOST:PORT,...`."""
    servers = text(value).removeprefix("kafka://")
    if has_login(servers):
        raise ValueError("must not have a login in it: set security_protocol, sasl_username and sasl_password_file")
    for server in servers.split(","):
        match = _SERVER.fullmatch(server)
        if match is None or not 1 <= int(match["port"]) <= MOST_PORT:
            raise ValueError(f"{value!r} must be kafka://host:port[,host:port...]")
    return f"kafka://{servers}"


def token_url(value: Any) -> str:
    """Read the address of a token server, which may be stored and shown, so it must not contain a login."""
    address = text(value)
    if has_login(address):
        raise ValueError("must not have a login in it: set sasl_oauth_client_id and sasl_oauth_client_secret_file")
    return address


def path(value: Any) -> Path:
    """Read the path of a file or folder. `~` is the home folder."""
    path = Path(text(str(value) if isinstance(value, Path) else value))
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ValueError(f"{value!r}: this home folder does not exist") from error


def commands_topics(value: Any) -> tuple[CommandsTopic, ...]:
    """Read `TOPIC[:DIALECT],...`, or a list of such texts."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError(f"{value!r} must be TOPIC[:DIALECT],... or a list of such texts")
    topics = []
    for item in filter(None, (item.strip() for item in items)):
        name, colon, dialect = item.partition(":")
        if colon and not dialect:
            raise ValueError(f"{item!r} has no dialect after the colon: use one of {', '.join(DIALECTS)}")
        topics.append(CommandsTopic(kafka_name(name), _dialect(item, dialect or "native")))
    if len({topic.name for topic in topics}) < len(topics):
        raise ValueError("a topic is given twice: give each topic once")
    return tuple(topics)


def registry(value: Any) -> str | None:
    if value is None or value == "":
        return None
    address = text(value)
    try:
        parts = urlsplit(address)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        has_login = "@" in parts.netloc
    except ValueError:
        is_address = has_login = False
    if not is_address:
        raise ValueError(
            "must be the address of a schema registry: http[s]://HOST:PORT"
        )  # does not show the value, which may contain a password
    if has_login:
        raise ValueError("must not have a login in it: set schema_registry_username and schema_registry_password")
    return address.rstrip("/")


def import_path(value: Any) -> str:
    """Read the import path of a function: `package.module:function`."""
    if not isinstance(value, str) or not _IMPORT_PATH.fullmatch(value):
        raise ValueError(f"{value!r} must be package.module:function")
    return value


def masked_fields(value: Any) -> tuple[str, ...]:
    """Read `NAME,PATH,...`, or a list of such texts."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError(f"{value!r} must be NAME,PATH,... or a list of such texts")
    fields = [item.strip() for item in items if item.strip()]
    for field in fields:
        if not all(field.split(".")):
            raise ValueError(f"{field!r} has an empty name: write names with a dot between them, such as card.number")
    return tuple(fields)


def provider_url(value: Any) -> str:
    address = text(value)
    if has_login(address):
        raise ValueError("must not have a login in it: it is asked for public keys only")
    parts = urlsplit(address)
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname))):
        raise ValueError(f"{value!r} must be https://... ; http:// is accepted on this machine only")
    return address


def oidc_roles(value: Any) -> tuple[tuple[str, str], ...]:
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


def optional_kafka_name(value: Any) -> str | None:
    """Read a name that follows Kafka's rule for topic names; None for an empty text."""
    return None if value == "" else kafka_name(value)


def delays(value: Any) -> tuple[DelayRule, ...]:
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


def rate(value: Any) -> float | None:
    """Read a number of firings per second; None for `unlimited`."""
    if value == "unlimited":
        return None
    try:
        rate = float("nan" if isinstance(value, bool) else value)
    except (TypeError, ValueError):
        rate = math.nan
    if not 0.001 <= rate <= 1e9:
        raise ValueError(f"{value!r} must be a number of firings a second, at least 0.001, or unlimited")
    return rate


def by_tenant(
    what: str, parse: Callable[[Any], Any], *, others: bool = False
) -> Callable[[Any], tuple[tuple[str, Any], ...]]:
    """Return a parser for `tenant:value,...`, a list of such texts, or a table. With `others`, `*` is allowed too."""

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
