"""Kafka as a source and a sink of Spark, in Python: the format `light_scheduler_kafka`.

It takes the options and has the columns of Spark's own connector (format `kafka`), and is there for where that one's
jars are not. One thing differs: it reads `read_committed` unless `kafka.isolation.level` says otherwise.
"""

from .source import FORMAT, KafkaDataSource

__all__ = ["FORMAT", "KafkaDataSource"]
