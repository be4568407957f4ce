"""Jobs on a Kafka with TLS, a login and ACLs, under the rights that docs/security.md gives them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.acls import grant
from support.secured import SECRETS, SecuredKafka, secured_kafka

from light_scheduler.cli.pipeline.running import cluster_of
from light_scheduler.kafka.rights import pipeline_rights
from light_scheduler.kafka.topic_admin import create_topics
from light_scheduler.settings import ENVIRONMENT_PREFIX, Settings, load_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]

KINDS = ("SSL", "SCRAM-SHA-512", "OAUTHBEARER")
ROWS = 20


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with secured_kafka(tmp_path_factory.mktemp("secured")) as kafka:
        yield kafka


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
