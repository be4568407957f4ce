"""A pytest plugin: the fixture `kafka` is one real broker for the whole run.

It is installed with the package and starts nothing unless a test asks for the fixture. An existing broker is used
instead with `--kafka-bootstrap host:port` or the environment variable TEST_KAFKA_BOOTSTRAP.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pytest

BOOTSTRAP_VARIABLE = "TEST_KAFKA_BOOTSTRAP"


class Kafka(Protocol):
    """What the fixture `kafka` is."""

    @property
    def bootstrap_servers(self) -> str:
        """The address as clients take it: `host:port`."""
        ...


@dataclass(frozen=True)
class ExistingKafka:
    """A broker that somebody else runs."""

    bootstrap_servers: str


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("light-scheduler").addoption(
        "--kafka-bootstrap",
        metavar="HOST:PORT",
        default=None,
        help=f"Use this Kafka in tests instead of starting one [env: {BOOTSTRAP_VARIABLE}].",
    )


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    """A running Kafka broker, shared by all tests of the run: name topics and groups so that they do not meet."""
    existing = request.config.getoption("--kafka-bootstrap") or os.environ.get(BOOTSTRAP_VARIABLE)
    if existing:
        yield ExistingKafka(existing)
        return
    from .broker import EmbeddedBroker

    with EmbeddedBroker() as broker:
        yield broker
