"""Spark's own Kafka connector, from Maven Central: where its jars are."""

from __future__ import annotations

from pathlib import Path

from .pinned_jar import PinnedJar

FOLDER = Path(__file__).parents[2] / "build" / "spark-kafka"
"""Where `make sparkkafka` puts them."""

SPARK = "4.2.0"

PINNED = (
    PinnedJar(
        "org.apache.spark",
        "spark-sql-kafka-0-10_2.13",
        SPARK,
        "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
        FOLDER,
    ),
    PinnedJar(
        "org.apache.spark",
        "spark-token-provider-kafka-0-10_2.13",
        SPARK,
        "641c7947afc8aa1189e433b7c2d305293993c8691bc1c2062d6d4f513b12518c",
        FOLDER,
    ),
    PinnedJar(
        "org.apache.kafka",
        "kafka-clients",
        "3.9.2",
        "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
        FOLDER,
    ),
    PinnedJar(
        "org.apache.commons",
        "commons-pool2",
        "2.13.1",
        "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
        FOLDER,
    ),
)
"""The connector and what it needs besides Spark."""


def jars() -> tuple[Path, ...]:
    """Return all of the jars, or none: one that was copied in part is not there."""
    return tuple(jar.path for jar in PINNED) if all(jar.is_there for jar in PINNED) else ()
