"""Checks before a worker starts: a free port, the broker, the topics, access to the HTTP server."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager

from light_scheduler.access.store import opened_store
from light_scheduler.clock import Clock
from light_scheduler.connection.diagnosis import fault_of
from light_scheduler.errors import BrokerError, BrokerRefused, BrokerUnreachable, ConfigurationError
from light_scheduler.host.loopback import is_loopback
from light_scheduler.host.ports import port_is_free
from light_scheduler.kafka.targets import Targets
from light_scheduler.kafka.topic_admin import uneven
from light_scheduler.kafka.topic_commands import create_topics_command, even_partitions_command
from light_scheduler.kafka.topic_facts import TargetTopic
from light_scheduler.settings import ENVIRONMENT_PREFIX, Settings

RETRY_S = 1.0
REMIND_S = 60.0
READ_TIMEOUT_S = 10.0

log = logging.getLogger(__name__)


class Waiting:
    """Logs what a start waits for: once, when it changes, and once a minute. `monotonic` is a clock in seconds."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._reported: tuple[str, float] | None = None

    def report(self, what: str) -> None:
        """Log what the start waits for, unless the same was logged within the last minute."""
        now = self._monotonic()
        if self._reported is None or self._reported[0] != what or now - self._reported[1] >= REMIND_S:
            self._reported = what, now
            log.warning("waiting: %s", what)

    def end(self) -> None:
        """Log the end of the wait, if there was any."""
        if self._reported is not None:
            log.info("the broker and the topics are available")


def refuse_port_in_use(host: str, port: int) -> None:
    """Raise ConfigurationError if the HTTP server cannot listen on its port."""
    if not port_is_free(port, host):
        raise ConfigurationError(
            "web_port",
            f"port {port} of {host} is in use, or the machine does not have that address: choose another with "
            f"--web-port or {ENVIRONMENT_PREFIX}WEB_PORT, or stop what listens there",
        )


async def wait_for_topics(
    settings: Settings, should_stop: Callable[[], bool], sleep: Callable[[float], Awaitable[None]]
) -> None:
    """Wait for the broker and the topics. Raises ConfigurationError if a changelog has too few partitions."""
    targets = Targets(settings.connection)
    inputs = {source.name for source in settings.inputs}
    needed = inputs | {settings.topics.changelog(name) for name in inputs}
    needed |= {settings.topics.history, settings.topics.dead_letters}
    needed |= {settings.topics.delays, settings.topics.delay_positions, settings.topics.tenants}
    waiting = Waiting()
    try:
        with _quiet_kafka_client():
            while not should_stop():
                try:
                    if (fault := await fault_of(settings.connection.aiokafka())) is not None:
                        raise fault
                    await targets.resolve(needed)
                    missing = [refusal for topic in sorted(needed) if (refusal := targets[topic].refusal) is not None]
                    if not missing:
                        partitions = {topic: targets[topic].partitions for topic in needed}
                        refuse_short_changelogs(settings, partitions)
                        for source in settings.inputs:
                            warn_of_idle_state(settings, source.name, partitions)
                        waiting.end()
                        return
                    known = {topic: targets[topic] for topic in needed}
                    waiting.report(f"{', '.join(missing)}; {_advice(settings, known)}")
                except BrokerRefused:
                    raise  # waiting does not help, and many failed logins may lock the user out
                except BrokerUnreachable as error:
                    waiting.report(
                        f"{error}. Start it, or name your brokers with --broker or {ENVIRONMENT_PREFIX}BROKER"
                    )
                except BrokerError as error:
                    waiting.report(str(error))
                await sleep(RETRY_S)
    finally:
        await targets.close()


def _advice(settings: Settings, topics: Mapping[str, TargetTopic]) -> str:
    """Return what to run about topics of which some are missing, or not permitted."""
    there = {name: topic.partitions for name, topic in topics.items() if topic.refusal is None}
    denied = any(topic.is_denied for topic in topics.values())
    missing = any(topic.refusal is not None and not topic.is_denied for topic in topics.values())
    create = f"run `{create_topics_command(settings, there)}`"
    grant = "`light-scheduler doctor` prints the command that grants each missing right"
    return "; ".join(text for text, is_needed in ((create, missing), (grant, denied)) if is_needed)


async def wait_for_access(
    settings: Settings,
    host: str,
    clock: Clock,
    should_stop: Callable[[], bool],
    sleep: Callable[[float], Awaitable[None]],
) -> None:
    """Wait until Kafka can be read, then check as `refuse_open_door`. Raises as it does."""
    waiting = Waiting()
    while not should_stop():
        try:
            await refuse_open_door(settings, host, clock)
        except BrokerRefused:
            raise
        except BrokerError as error:
            waiting.report(f"cannot read from Kafka whether there are tokens: {error}")
            await sleep(RETRY_S)
        else:
            waiting.end()
            return


async def refuse_open_door(settings: Settings, host: str, clock: Clock) -> None:
    """Raise ConfigurationError if other machines can reach the HTTP server and it requires no authentication."""
    wants_certificates = settings.web_ssl_client_auth == "required"
    if settings.insecure or settings.oidc is not None or wants_certificates or is_loopback(host):
        return
    async with opened_store(settings.connection, settings.topics, clock, READ_TIMEOUT_S) as store:
        if store.book.is_set_up:
            return
    raise ConfigurationError(
        "web_host",
        f"other machines can reach {host}, and there is no token yet, so anybody there could change every schedule: "
        f"create a token with `light-scheduler tokens create`, set oidc_issuer, set web_ssl_client_auth to required "
        f"(with web_ssl_certificate and web_ssl_client_ca), or set insecure (--insecure true, "
        f"{ENVIRONMENT_PREFIX}INSECURE=true) to accept that",
    )


def refuse_short_changelogs(settings: Settings, partitions: Mapping[str, int]) -> None:
    """Raise ConfigurationError if a changelog has fewer partitions than its commands topic."""
    for source in settings.inputs:
        changelog = settings.topics.changelog(source.name)
        needed, there = partitions[source.name], partitions[changelog]
        if needed > there:
            raise ConfigurationError(
                "commands_topics",
                f"{source.name} has {needed} partitions and its changelog {changelog} has {there}; each partition "
                "needs a changelog partition of its own: run "
                f"`{even_partitions_command(settings, source, needed, there)}`",
            )


def warn_of_idle_state(settings: Settings, topic: str, partitions: Mapping[str, int]) -> None:
    """Log a warning if a changelog has more partitions than its commands topic: these have no lanes."""
    [source] = [source for source in settings.inputs if source.name == topic]
    commands, changelog = partitions[topic], partitions[settings.topics.changelog(topic)]
    if changelog > commands:
        finding = uneven(settings, source, commands, changelog)
        log.warning("%s %s: run `%s`", finding.topic, finding.problem, finding.fix)


@contextmanager
def _quiet_kafka_client() -> Iterator[None]:
    """Keep aiokafka's lines out of the log: it logs each failed connection, which our warning already reports."""
    client = logging.getLogger("aiokafka")
    level = client.level
    client.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        client.setLevel(level)
