"""The options of source and sink: those of Spark's own Kafka connector, checked by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from light_scheduler.settings import SECURITY_SETTINGS

from .security import for_librdkafka, of_settings

CLIENT_PREFIX = "kafka."
"""Prefix of the Kafka client's own options."""

TopicPart = tuple[str, int]
"""(topic, partition)."""

TOPIC_IDS = "#ids"
"""Key for the ids of topics in a JSON of offsets."""

EARLIEST = -2
LATEST = -1
"""Special offsets for the ends of the log, as in Spark's JSON of offsets."""

CONNECTION = frozenset({"broker", *SECURITY_SETTINGS})
"""Options that are settings of the connection, with the settings' names."""

_SHARED = CONNECTION | {"includeheaders", "path", "checkpointlocation", "queryname"}
_READ = _SHARED | {
    *("subscribe", "subscribepattern", "assign"),
    *("startingoffsets", "endingoffsets", "startingtimestamp", "endingtimestamp"),
    *("failondataloss", "minpartitions", "maxrecordsperpartition", "maxoffsetspertrigger"),
    *("kafkaconsumer.polltimeoutms", "groupidprefix"),
}
_WRITE = _SHARED | {"topic", "transactionalid", "writeid"}
_SELECTIONS = ("subscribe", "subscribePattern", "assign")


@dataclass(frozen=True)
class Bound:
    """The begin or end of a range: EARLIEST, LATEST, an offset for each partition, or an instant (UTC epoch ms)."""

    everywhere: int | None = None
    offsets: Mapping[TopicPart, int] = field(default_factory=dict)
    timestamp: int | None = None


@dataclass(frozen=True)
class ReadOptions:
    """Options of a read. `client` is librdkafka's configuration."""

    client: dict[str, Any] = field(repr=False)  # may contain secrets
    topics: tuple[str, ...]
    pattern: str | None
    partitions: frozenset[TopicPart]
    starting: Bound
    ending: Bound
    include_headers: bool
    fail_on_data_loss: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    max_offsets_per_trigger: int | None
    patience_ms: int

    @classmethod
    def parse(cls, options: Mapping[str, str], *, streaming: bool) -> ReadOptions:
        """Parse the options of a source. Raises ValueError naming the invalid option."""
        given = _lowered(options)
        _refuse_unknown(given, _READ)
        chosen = [name for name in _SELECTIONS if name.lower() in given]
        if len(chosen) != 1:
            raise ValueError(f"give exactly one of the options {', '.join(_SELECTIONS)}; got {chosen or 'none'}")
        client = {
            "group.id": given.get("groupidprefix", "light-scheduler-pipeline"),  # librdkafka requires one
            # Java's connector reads uncommitted records by default. But records of aborted transactions never happened,
            # and readers of a scheduler's topics want real events.
            "isolation.level": "read_committed",
            # The end of a quiet log is reported only after this wait.
            "fetch.wait.max.ms": 20,
            # The client's default, a pause of one second whenever its queue was full, would stall a scan.
            "fetch.queue.backoff.ms": 5,
            "queued.max.messages.kbytes": 32_768,
            "queued.min.messages": 50_000,
            **_client(given),
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
        return cls(
            client=client,
            topics=tuple(filter(None, (topic.strip() for topic in given.get("subscribe", "").split(",")))),
            pattern=given.get("subscribepattern"),
            partitions=_assigned(given["assign"]) if "assign" in given else frozenset(),
            starting=_place(given, "starting", LATEST if streaming else EARLIEST),
            ending=_place(given, "ending", LATEST),
            include_headers=_truth(given, "includeHeaders", default=False),
            fail_on_data_loss=_truth(given, "failOnDataLoss", default=True),
            min_partitions=_count(given, "minPartitions"),
            max_records_per_partition=_count(given, "maxRecordsPerPartition"),
            max_offsets_per_trigger=_count(given, "maxOffsetsPerTrigger"),
            patience_ms=_count(given, "kafkaConsumer.pollTimeoutMs") or 120_000,
        )


@dataclass(frozen=True)
class WriteOptions:
    """Destination of rows. `client` is librdkafka's configuration.

    With a `transactional_id`, each task's rows are one transaction, which also records that they are written.
    """

    client: dict[str, Any] = field(repr=False)  # may contain secrets
    topic: str | None
    transactional_id: str | None
    write_id: str | None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> WriteOptions:
        """Parse the options of a sink. Raises ValueError naming the invalid option."""
        given = _lowered(options)
        _refuse_unknown(given, _WRITE)
        transactional_id = given.get("transactionalid")
        if transactional_id and not given.get("topic"):
            raise ValueError("option transactionalId needs the option topic: what is written is noted for that topic")
        if given.get("writeid") and not transactional_id:
            raise ValueError("option writeId needs the option transactionalId")
        client = {
            "partitioner": "murmur2_random",  # Kafka's own; librdkafka has another default
            "enable.idempotence": True,
            "linger.ms": 20,
            "batch.size": 524_288,
            "message.max.bytes": 104_857_600,  # the topic decides how large a record may be
            "compression.type": "lz4",
            "queue.buffering.max.messages": 200_000,
            "queue.buffering.max.kbytes": 131_072,
            "delivery.report.only.error": True,
            **_client(given),
        }
        return cls(client, given.get("topic"), transactional_id, given.get("writeid"))


def _lowered(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): str(value) for name, value in options.items()}


def _client(given: Mapping[str, str]) -> dict[str, str]:
    client = of_settings({name: value for name, value in given.items() if name in CONNECTION})
    client |= for_librdkafka(
        {name.removeprefix(CLIENT_PREFIX): value for name, value in given.items() if name.startswith(CLIENT_PREFIX)}
    )
    if not client.get("bootstrap.servers"):
        raise ValueError("option kafka.bootstrap.servers is required: host:port,host:port")
    return client


def _refuse_unknown(given: Mapping[str, str], known: frozenset[str]) -> None:
    unknown = [name for name in given if name not in known and not name.startswith(CLIENT_PREFIX)]
    if unknown:
        raise ValueError(
            f"option {unknown[0]} is not known to this Kafka format; there are {', '.join(sorted(known - _SHARED))}, "
            f"includeheaders, {CLIENT_PREFIX}* for the client, and settings of a connection (security_protocol, ...)"
        )


def _assigned(text: str) -> frozenset[TopicPart]:
    named = _json(text, "assign")
    return frozenset((topic, int(partition)) for topic, partitions in named.items() for partition in partitions)


def _place(given: Mapping[str, str], end: str, default: int) -> Bound:
    if f"{end}timestamp" in given:
        return Bound(timestamp=_count(given, f"{end}Timestamp"))
    name = f"{end}Offsets"
    text = given.get(name.lower(), "").strip()
    if text.lower() in ("", "earliest", "latest"):
        everywhere = {"": default, "earliest": EARLIEST, "latest": LATEST}[text.lower()]
        if end == "ending" and everywhere == EARLIEST:
            raise ValueError("option endingOffsets must be latest or JSON: a range cannot end at the earliest offset")
        return Bound(everywhere)
    return Bound(offsets=flat(_json(text, name)))


def _json(text: str, name: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"option {name} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"option {name} must be a JSON object by topic")
    return value


def _truth(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = given.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise ValueError(f"option {name} must be true or false, not {text!r}")
    return text == "true"


def _count(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if not text.isdigit() or int(text) == 0:
        raise ValueError(f"option {name} must be a whole number above 0, not {text!r}")
    return int(text)


def nested(offsets: Mapping[TopicPart, int]) -> dict[str, dict[str, int]]:
    """Return offsets in the form of Spark's checkpoints and options: `{topic: {partition: offset}}`."""
    by_topic: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        by_topic.setdefault(topic, {})[str(partition)] = offset
    return by_topic


def flat(by_topic: Mapping[str, Mapping[str, Any]]) -> dict[TopicPart, int]:
    """Return offsets in `{topic: {partition: offset}}` by (topic, partition), without the ids."""
    return {
        (topic, int(partition)): int(offset)
        for topic, partitions in by_topic.items()
        if topic != TOPIC_IDS
        for partition, offset in partitions.items()
    }
