"""How jobs use Spark: all its cores, few files, and names that people recognise."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from support.waiting import eventually_blocking

from light_scheduler.cli.pipeline.progress import SparkProgress, tasks_of
from light_scheduler.kafka.topic_admin import create_topic
from light_scheduler.pipeline.topics import read_topics
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]


def test_one_long_log_is_read_by_all_cores(spark: SparkSession, kafka: Kafka, prefix: str) -> None:
    create_topic(kafka.bootstrap_servers, prefix, 1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(100):
        producer.produce(prefix, b"%d" % number)
    assert producer.flush(15) == 0
    table = read_topics(spark, kafka.bootstrap_servers, [prefix])
    assert table.rdd.getNumPartitions() == spark.sparkContext.defaultParallelism == 2
    assert sorted(row.offset for row in table.collect()) == list(range(100))


def test_the_jobs_of_a_phase_bear_its_name_and_all_their_tasks_count(spark: SparkSession) -> None:
    context = spark.sparkContext
    with SparkProgress() as progress, progress.watching(spark):
        with progress.phase("Counting sheep"):
            assert context.getLocalProperty("spark.job.description") == "Counting sheep"
            assert context.parallelize(range(10), 5).map(lambda n: (n % 2, n)).groupByKey(3).count() == 2
        eventually_blocking(  # tasks are counted beside the work, a moment after their end
            lambda: tasks_of(context.statusTracker(), "Counting sheep") == (8, 8), what="tasks that are all done"
        )
        assert context.getLocalProperty("spark.job.description") is None
