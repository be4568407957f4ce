"""The text of the broker's configuration files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .listeners import SecuredListener

from light_scheduler.host.ports import HOST

_CONTROLLER_ID = 100
# After a SIGKILL, the controller lets the broker register again only when the old registration has expired, 9 s by
# default: until then, the node would be down.
_SESSION = {"broker.session.timeout.ms": 3_000, "broker.heartbeat.interval.ms": 500}


class SideDoor(NamedTuple):
    """An alternative address: the broker listens on `port`, but tells clients of it to use `advertised_port`.

    So a proxy between the two ports stays between client and broker.
    """

    port: int
    advertised_port: int


class FurtherPorts(NamedTuple):
    """Ports of a broker besides its main one: side doors, and ports with TLS or a login."""

    side_doors: Sequence[SideDoor] = ()
    secured: Sequence[SecuredListener] = ()


NO_FURTHER_PORTS = FurtherPorts()


class WaysIn(NamedTuple):
    """The ports that a broker listens on: the main one without security, and others."""

    port: int
    further: FurtherPorts = NO_FURTHER_PORTS


class Node(NamedTuple):
    """A node's role in its cluster: broker and controller in one, unless the controller is a separate process.

    Topics have `copies` replicas, one of which may be missing.
    """

    controller_port: int
    id: int = 1
    has_controller: bool = True
    copies: int = 1


def server_properties(ways_in: WaysIn, node: Node, log_dir: Path, others: Mapping[str, object] | None = None) -> str:
    """Return the `server.properties` of a node on the loopback address.

    `others` are properties that are added to ours or replace them.
    """
    port, (side_doors, secured) = ways_in
    doors = {f"SIDE{number}": door for number, door in enumerate(side_doors)}
    listeners = {"PLAINTEXT": port} | {name: door.port for name, door in doors.items()}
    advertised = {"PLAINTEXT": port} | {name: door.advertised_port for name, door in doors.items()}
    protocols = dict.fromkeys((*listeners, "CONTROLLER"), "PLAINTEXT")
    for listener in secured:
        listeners[listener.name] = advertised[listener.name] = listener.port
        protocols[listener.name] = listener.protocol
    controller_id = node.id if node.has_controller else _CONTROLLER_ID
    settings = {
        "process.roles": "broker,controller" if node.has_controller else "broker",
        "node.id": node.id,
        "controller.quorum.voters": f"{controller_id}@{HOST}:{node.controller_port}",
        "listeners": _addresses(listeners | ({"CONTROLLER": node.controller_port} if node.has_controller else {})),
        "advertised.listeners": _addresses(advertised),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "log.dirs": log_dir,
        **_copies(node.copies),
        # Kafka's default of 50 partitions each is for clusters: creating, opening and cleaning them takes most of a
        # start.
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.num.partitions": 4,
        "share.coordinator.state.topic.num.partitions": 1,
        # A misspelt topic is an error, as it should be in production.
        "auto.create.topics.enable": "false",
        # The first member of a group does not wait for others.
        "group.initial.rebalance.delay.ms": 0,
        # Kafka refuses session time-outs below 6 s; tests of a worker's death should not wait that long.
        "group.min.session.timeout.ms": 1_000,
        **_SESSION,
        # Threads and memory for a laptop; the cleaner's buffer would be 128 MiB.
        "num.network.threads": 2,
        "num.io.threads": 4,
        "background.threads": 2,
        "num.recovery.threads.per.data.dir": 2,
        "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
        **{name: value for listener in secured for name, value in listener.properties().items()},
        **(others or {}),
    }
    return _text(settings)


def controller_properties(*, port: int, log_dir: Path, copies: int, others: Mapping[str, object] = {}) -> str:
    """Return the properties of a separate controller process, which also places the replicas of new topics.

    `others` are as in `server_properties`.
    """
    return _text(
        {
            "process.roles": "controller",
            "node.id": _CONTROLLER_ID,
            "controller.quorum.voters": f"{_CONTROLLER_ID}@{HOST}:{port}",
            "listeners": f"CONTROLLER://{HOST}:{port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
            "log.dirs": log_dir,
            **_copies(copies),
            **_SESSION,
            **others,
        }
    )


def log4j2_properties() -> str:
    """Return a Log4j configuration that writes warnings and errors to standard output."""
    return """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX} %p %c: %m%n
"""


def _copies(count: int) -> dict[str, int]:
    in_sync = max(1, count - 1)
    return {
        "default.replication.factor": count,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": count,
        "transaction.state.log.replication.factor": count,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": count,
        "share.coordinator.state.topic.min.isr": in_sync,
    }


def _text(settings: Mapping[str, object]) -> str:
    return "".join(f"{name}={_escape(str(value))}\n" for name, value in settings.items())


def _addresses(ports: dict[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())


def _escape(value: str) -> str:
    """Escape a value for a Java properties file, so that a path may contain any characters."""
    escaped = value.replace("\\", "\\\\")
    return "".join(
        character
        if character.isascii() and character.isprintable()
        else "".join(f"\\u{unit:04x}" for unit in _utf16(character))
        for character in escaped
    )


def _utf16(character: str) -> list[int]:
    encoded = character.encode("utf-16-be")
    return [int.from_bytes(encoded[i : i + 2]) for i in range(0, len(encoded), 2)]
