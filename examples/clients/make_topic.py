"""Create a topic, unless it exists: `python make_topic.py reminders`. Target topics must exist."""

import asyncio
import os
import sys

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import TopicAlreadyExistsError, for_code


async def main(*names: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=os.environ.get("KAFKA", "127.0.0.1:9092"))
    await admin.start()
    try:
        topics = [NewTopic(name, num_partitions=4, replication_factor=1) for name in names]
        for name, code, *_ in (await admin.create_topics(topics)).topic_errors:
            error = for_code(code)
            if code and error is not TopicAlreadyExistsError:
                raise error(name)
            print(name, "exists" if code else "created")
    finally:
        await admin.close()


asyncio.run(main(*sys.argv[1:]))
