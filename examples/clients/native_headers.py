"""Schedule with any Kafka client, here confluent-kafka: a command is just a record with headers."""

import os

from confluent_kafka import Producer

# librdkafka's default partitioner is not Kafka's: a cancel from another client would go to a different partition.
producer = Producer({"bootstrap.servers": os.environ.get("KAFKA", "127.0.0.1:9092"), "partitioner": "murmur2_random"})
producer.produce(
    "light-scheduler-commands",
    key="order-3",  # the entity: all its commands need the same key; also the id, unless schedule-id is given
    value=b'{"amount": 12}',
    headers={
        "schedule-after": "2s",
        "schedule-target-topic": "reminders",
        "schedule-labels": "team=billing",
        "trace": "0af7651916cd43dd",  # any other header passes through
    },
)
producer.produce("light-scheduler-commands", key="order-1", value=None)  # null value: cancel
print("left unsent:", producer.flush(10))
