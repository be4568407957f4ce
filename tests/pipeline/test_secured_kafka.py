"""Jobs on a Kafka with TLS, a login and ACLs, under the rights that docs/security.md gives them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.acls import grant
from support.cases import by_day
from support.least_rights import consumer_rights, pipeline_rights
from support.ordering import ordered_producer
from support.rotation import rotating
from support.secured import CLIENT_SECRET, KEY_PASSWORD, PASSWORD, SECRETS, SecuredKafka

from light_scheduler.cli.pipeline.running import cluster_of
from light_scheduler.kafka.rights import Right
from light_scheduler.kafka.topic_admin import create_topic, create_topics
from light_scheduler.pipeline.kafka import FORMAT
from light_scheduler.pipeline.topics import register
from light_scheduler.settings import ENVIRONMENT_PREFIX, Settings, load_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]

KINDS = by_day(2, ["SSL", *(pytest.param(kind, marks=pytest.mark.soak) for kind in ("OAUTHBEARER", "SCRAM-SHA-512"))])
ROWS = 20


def settings_of(options: dict[str, str], app_id: str) -> Settings:
    given = {**options, "app_id": app_id, "partitions": "2"}
    return load_settings(environment={ENVIRONMENT_PREFIX + name.upper(): value for name, value in given.items()})


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_loaded_and_read_back_under_least_rights(
    spark: SparkSession, secured: SecuredKafka, prefix: str, tmp_path: Path, kind: str
) -> None:
    from light_scheduler.pipeline.load import LoadOptions, main
    from light_scheduler.pipeline.topics import read_topics

    create_topics(settings_of({"broker": f"kafka://{secured.servers}"}, prefix))
    settings = settings_of(secured.settings(kind), prefix)
    grant(secured.servers, secured.principal(kind), pipeline_rights(settings, [], f"load-{prefix}"))
    table = tmp_path / "table.csv"
    table.write_text("id,at\n" + "".join(f"id-{number},1900000000000\n" for number in range(ROWS)))
    cluster = cluster_of(settings, {})
    commands = settings.topics.commands
    options = LoadOptions(
        table=str(table),
        cluster=cluster,
        commands_topic=commands,
        marks_topic=settings.topics.loads,
        format="csv",
        constants={"target-topic": "reminders"},
        name=f"load-{prefix}",
    )
    assert main(spark, options).sent == ROWS
    records = read_topics(spark, cluster.bootstrap_servers, [commands], **cluster.client_options())
    assert records.count() == ROWS
    for secret in SECRETS:
        assert secret not in repr(options)


def test_tasks_of_a_stream_and_its_driver_read_with_renewed_certificates(
    secured: SecuredKafka, prefix: str, tmp_path: Path
) -> None:
    """A task leaves its client to the next one of its process, and the driver keeps one for as long as the stream."""
    from pyspark.sql.types import StructType

    from light_scheduler.pipeline.kafka import fetching
    from light_scheduler.pipeline.kafka.options import ReadOptions
    from light_scheduler.pipeline.kafka.ranges import OffsetRange
    from light_scheduler.pipeline.kafka.reader import KafkaStreamReader

    topic = f"{prefix}-renewed"
    create_topic(secured.servers, topic, 1)
    producer = ordered_producer(secured.servers)
    producer.produce(topic, b"payload", partition=0)
    assert producer.flush(30) == 0
    with rotating(secured, tmp_path / "rotation") as rotation:
        grant(secured.servers, secured.principal("SSL"), consumer_rights([topic], topic))
        given = {**rotation.settings, "subscribe": topic, "groupIdPrefix": topic}
        options, reader = ReadOptions.parse(given, streaming=True), KafkaStreamReader(given, StructType())

        def values() -> list[bytes]:
            chunks = fetching.read_range(options, OffsetRange(topic, 0, 0, 1))
            return [message.value() for chunk in chunks for message in chunk]

        latest = reader.reportLatestOffset()
        assert values() == [b"payload"]
        before, logs = fetching._idle.take(options.client), reader._logs
        fetching._idle.leave(before)
        rotation.renew()
        assert values() == [b"payload"]
        assert reader.reportLatestOffset() == latest
        after = fetching._idle.take(options.client)
        assert after.client is not before.client
        assert reader._logs is not logs
        after.client.close()
        reader.stop()


MODULES = "org.apache.kafka.common.security"
PEM = "PEM"


def official(secured: SecuredKafka, kind: str) -> dict[str, str]:
    """Return what Spark's own connector would be told, by its names."""
    authority = {"ssl.truststore.type": PEM, "ssl.truststore.location": str(secured.authority.path)}
    if kind == "SSL":
        own = {"ssl.keystore.type": PEM, "ssl.keystore.location": str(secured.client.together)}
        found = {"security.protocol": "SSL", **authority, **own, "ssl.key.password": KEY_PASSWORD}
    elif kind == "OAUTHBEARER":
        login = f'clientId="token-user" clientSecret="{CLIENT_SECRET}" scope="kafka"'
        found = {
            "security.protocol": "SASL_SSL",
            **authority,
            "sasl.mechanism": kind,
            "sasl.oauthbearer.token.endpoint.url": secured.token_server.url,
            "sasl.login.callback.handler.class": f"{MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler",
            "sasl.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required {login};",
        }
    else:
        login = f'username="{kind.lower()}-user" password="{PASSWORD}"'
        found = {
            "security.protocol": "SASL_SSL",
            **authority,
            "sasl.mechanism": kind,
            "sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required {login};",
        }
    found["bootstrap.servers"] = secured.address(found["security.protocol"])
    return {f"kafka.{name}": value for name, value in found.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_the_format_takes_the_names_of_the_official_connector_and_those_of_the_settings(
    spark: SparkSession, secured: SecuredKafka, prefix: str, kind: str
) -> None:
    create_topic(secured.servers, prefix, 1)
    rights = [Right("topic", prefix, ("Read", "Write")), Right("group", "light-scheduler-pipeline", ("Read",))]
    grant(secured.servers, secured.principal(kind), rights)
    register(spark)
    names = {"official": official(secured, kind), "settings": secured.settings(kind)}
    for written, options in names.items():
        rows = spark.createDataFrame([(written.encode(),)], "value binary")
        rows.write.format(FORMAT).mode("append").options(**options, topic=prefix).save()
    for options in names.values():
        read = spark.read.format(FORMAT).options(**options, subscribe=prefix).load()
        assert [bytes(row.value).decode() for row in read.sort("offset").collect()] == list(names)
