"""Kafka as a source and a sink of Spark, in Python: the format `light_scheduler_kafka`.

It has the options and columns of Spark's own connector (format `kafka`), for environments without its jars. One thing
differs: it reads `read_committed` unless `kafka.isolation.level` is set.
"""

from .source import FORMAT, KafkaDataSource

__all__ = ["FORMAT", "KafkaDataSource"]
