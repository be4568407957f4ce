"""All private fields of aiokafka, Faust, mode and asyncio that we use, by class, with their purpose.

Private fields change without notice, so the libraries are pinned, and a contract test checks each entry against the
installed versions. Another test finds used fields that are missing here.
"""

from __future__ import annotations

PRIVATE_FIELDS: dict[str, dict[str, str]] = {
    "aiokafka.client:AIOKafkaClient": {
        "_client_id": "connections are made as aiokafka's client makes them, and know how long their login lasts",
        "_connections_max_idle_ms": "as `_client_id`; those that are idle are not made anew",
        "_conns": "connections to a broker that does not answer are closed, those whose login ends are replaced",
        "_get_conn": "replaced: each connection has its own time-out, and knows when its login ends",
        "_get_conn_lock": "one connection is made at a time; a producer that is cut off leaves none half made",
        "_md_update_fut": "a producer that is cut off waits for no metadata",
        "_loop": "another thread's clients are told in their own loop",
        "_on_connection_closed": "tells which broker did not answer",
        "_request_timeout_ms": "how long connecting may take",
        "_sasl_kerberos_domain_name": "as `_client_id`",
        "_sasl_kerberos_service_name": "as `_client_id`",
        "_sasl_mechanism": "as `_client_id`",
        "_sasl_oauth_token_provider": "asked before a connection is made, whose time is bounded",
        "_sasl_plain_password": "as `_client_id`",
        "_sasl_plain_username": "as `_client_id`",
        "_security_protocol": "as `_client_id`",
        "_ssl_context": "as `_client_id`",
    },
    "aiokafka.conn:AIOKafkaConnection": {
        "_closed_fut": "closed to the last before the event loop may end",
        "_handle_frame": "tells for how long a broker has a client wait",
        "_last_action": "whether a connection is idle",
        "_protocol": "whether there is anything to close",
        "_reader": "whether bytes have come",
        "_request_timeout": "how long an answer may take, if it is not silence that is bounded",
        "_requests": "whether an answer is due",
    },
    "aiokafka.consumer.consumer:AIOKafkaConsumer": {
        "_auto_offset_reset": "commands: a place that the log does not have is told, not passed over",
        "_client": "asked for the partitions of a topic; told when metadata are doubted; closed when `stop` hangs",
        "_closed": "a fetch after the end raises as aiokafka's own",
        "_coordinator": "heartbeats of our own, before a lane fences; a member that moved joins again",
        "_fetch_max_wait_ms": "how late a command arrives",
        "_fetcher": "what was fetched is taken in batches; fetches are ended before `stop`",
        "_isolation_level": "Faust cannot be told to read committed records",
        "_subscription": "the assignment in force, and its fetch context",
    },
    "aiokafka.consumer.group_coordinator:GroupCoordinator": {
        "_coordination_task": "nobody else notices that it has failed",
        "_pending_exception": "nobody else notices that it stands still",
        "_heartbeat_task": "is there unless the member joins its group",
        "_do_heartbeat": "tells whether the group still takes us for a member",
    },
    "aiokafka.consumer.subscription_state:TopicPartitionState": {
        "_position": "how far a partition was read, without waiting for it",
    },
    "aiokafka.consumer.fetcher:Fetcher": {
        "_closed": "as the consumer's",
        "_create_fetch_waiter": "waits for records",
        "_fetch_task": "cancelled before `stop`, which trips over it",
        "_isolation_level": "lifted for the question of where a log ends",
        "_fetch_waiters": "ended, so that a lane that wakes is read for",
        "_notify": "has a partition fetched again, or a wait end",
        "_pending_tasks": "as `_fetch_task`",
        "_records": "what was fetched",
        "_subscriptions": "its fetch context, and whether a partition is still assigned",
        "_wait_consume_future": "is notified when a fetch was taken",
    },
    "aiokafka.protocol.metadata:MetadataRequest": {
        "_allow_auto_topic_creation": "a question about a topic creates none",
    },
    "aiokafka.consumer.fetcher:FetchResult": {
        "_partition_records": "replaced by a reader that makes commands, or state records",
        "_topic_partition": "whether it is still assigned",
        "_update_position": "a large fetch is taken in parts",
    },
    "aiokafka.consumer.fetcher:PartitionRecords": {
        "_consumer_record": "replaced: records are made by the batch",
        "_records": "replaced by batches that are taken at once",
        "_records_iterator": "aiokafka's checks of each batch",
        "_tp": "the partition of commands",
    },
    "aiokafka.producer.producer:AIOKafkaProducer": {
        "_closed": "lets go of a producer that would try for ever",
        "_message_accumulator": "what waits to be sent when it is let go of",
        "_sender": "ended when `stop` hangs",
        "_txn_manager": "whether the coordinator has taken the partitions; markers without records",
    },
    "aiokafka.producer.message_accumulator:MessageAccumulator": {
        "_append_batch": "where a batch, whose futures nobody may await, is made",
        "_batches": "batches whose futures nobody awaits",
    },
    "aiokafka.producer.message_accumulator:MessageBatch": {
        "_drain_waiter": "one of these futures",
    },
    "aiokafka.producer.message_accumulator:BatchBuilder": {
        "_build": "lets go of the records when a batch is built",
        "_builder": "written to without a call per record",
        "_relative_offset": "counts the records",
    },
    "asyncio.streams:StreamReader": {
        "_buffer": "how much of an answer is there",
    },
    "aiokafka.codec:": {
        "_detect_xerial_stream": "Snappy's framing, for the bounded decoders",
    },
    "faust.assignor.partition_assignor:PartitionAssignor": {
        "_compress": "assignments in Faust's form",
        "_decompress": "as `_compress`",
        "_get_changelog_distribution": "which members have tables of Faust's",
        "_get_client_metadata": "what a member says of itself",
        "_get_external_topic_distribution": "which member has which partitions, for all of them",
        "_perform_assignment": "overridden: see `agents.faust_assignor`",
        "_protocol_assignments": "as `_compress`",
        "_update_member_urls": "at which address a member is",
        "_url": "this member's address",
    },
    "faust.transport.drivers.aiokafka:AIOKafkaConsumerThread": {
        "_consumer": "ended in an outage",
        "_create_worker_consumer": "overridden: see `agents.transport`",
        "_ensure_consumer": "the consumer that the thread has",
        "_fetch_records": "overridden",
    },
    "faust.transport.drivers.aiokafka:Consumer": {
        "_drain_messages": "overridden",
        "_get_active_partitions": "what Faust itself reads",
        "_getmany": "hands the fetch to the thread",
        "_new_consumer_thread": "overridden",
        "_thread": "the thread that has the consumer",
        "_to_message": "messages for Faust's own agents",
    },
    "faust.tables.manager:TableManager": {
        "_update_channels": "an application without tables does not wait for them",
    },
    "faust.web.drivers.aiohttp:Web": {
        "_runner": "what a site is made of",
        "_transport_handlers": "a site of ours listens, with its limits",
    },
    "mode.worker:Worker": {
        "_sentinel_task": "overridden: a worker that has ended does not wait for another second",
    },
}
