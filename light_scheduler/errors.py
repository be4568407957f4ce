"""The errors of light-scheduler. Errors of a single package, such as the outbox, are defined in that package.

    SchedulerError
    ├── ConfigurationError      a setting is unknown or has a bad value; names the setting
    ├── FieldError              a part of a request is invalid; names the field
    │   ├── InvalidCommand      ... of a command, which cannot be parsed or is not allowed
    │   ├── TenantRulesError    ... of a tenant's rules: in `model.tenant_rules`
    │   │   └── TenantWasDeleted    ... which must be resumed first
    │   ├── TokenError          ... of a token of the HTTP API: in `access.tokens`
    │   │   └── TokenUnusable       ... which does not exist, or has ended
    │   ├── QueryError          ... of a query: in `tables.views`
    │   └── BodyError           ... of a JSON body of HTTP: in `web.forms.json_bodies`
    ├── FormatError             our own stored bytes cannot be read
    │   ├── FormatTooNew        ... because a newer version wrote them
    │   └── FormatTooOld        ... because an older version wrote them; they are a copy that can be rebuilt
    ├── StateError              a worker's local state cannot be used
    │   ├── StateLocked         ... because another process holds it (retriable)
    │   ├── StateCorrupt        ... because its files are damaged: it must be rebuilt (retriable)
    │   ├── StateStale          ... because it may have missed tombstones: it must be rebuilt (retriable)
    │   ├── StateForeign        ... because it belongs to another application or commands topic
    │   └── StateFull           ... because there is no disk space left
    ├── LaneError               a partition's lane must restart (retriable)
    │   ├── CycleTimeout        a transaction did not finish before its deadline
    │   ├── InputInDoubt        fetched records may come from another log than the expected one
    │   ├── Overtaken           another worker has written to the state of the partition
    │   ├── TransactionStuck    a transaction could not begin, since the previous one does not end
    │   └── IllegalTransition   a lane cannot go from its state to another one (a bug: not retriable)
    ├── BrokerError             the broker cannot be reached, or a topic or right is missing (retriable)
    │   ├── BrokerUnreachable   ... because nothing answers at its address
    │   ├── BrokerRefused       ... because TLS or the login fails (not retriable)
    │   ├── ChangeUnconfirmed   a change may be stored, but this was not confirmed (not retriable)
    │   ├── NoAnswer            ... because it does not answer a request in time
    │   └── BrokerStartError    the embedded broker did not start (not retriable)
    ├── JobError                a job of the data pipeline failed
    └── ClientError
        ├── WorkerUnreachable   no worker answers at the given address (retriable)
        ├── ResultTimeout       no answer came in time; the command may still apply (retriable): in `client.errors`
        ├── CommandRefused      the scheduler answered `rejected` or `conflict`; has the result: in `client.errors`
        └── NotInAllTopics      some of several topics did not answer a bulk command: in `client.bulk_results`

Callers branch on classes, never on text. `retriable` says whether the same call may succeed later.
"""

from __future__ import annotations

from typing import ClassVar


class SchedulerError(Exception):
    """Root of all errors of this package."""

    retriable: ClassVar[bool] = False


class ConfigurationError(SchedulerError):
    """A setting is unknown or has a bad value."""

    def __init__(self, setting: str, reason: str) -> None:
        super().__init__(f"setting {setting}: {reason}")
        self.setting = setting
        self.reason = reason


class FieldError(SchedulerError):
    """A part of a request is invalid. `field` names it, `reason` says what is wrong and what would be valid."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class InvalidCommand(FieldError):
    """A command cannot be parsed or is not allowed.

    `field` is the sender's name for the field: a header, or a path in the JSON form.
    """


class FormatError(SchedulerError):
    """Stored bytes do not have the expected layout."""


class FormatTooNew(FormatError):
    """Stored bytes were written by a newer version. They are not changed."""


class FormatTooOld(FormatError):
    """Stored bytes have the layout of an older version. They are a copy, which is rebuilt."""


class StateError(SchedulerError):
    """A worker's local state cannot be used."""


class StateLocked(StateError):
    """Another process holds the local state of this partition."""

    retriable = True


class StateCorrupt(StateError):
    """The files of a local copy are damaged. Their content is also in the changelog."""

    retriable = True


class StateStale(StateError):
    """A local copy may have missed tombstones that the changelog has since removed."""

    retriable = True


class StateFull(StateError):
    """There is no disk space for local state."""


class StateForeign(StateError):
    """The state of a partition belongs to another application, or to another commands topic."""


class LaneError(SchedulerError):
    """A partition's lane must restart from its last commit."""

    retriable = True


class CycleTimeout(LaneError):
    """A transaction did not finish before its deadline."""


class InputInDoubt(LaneError):
    """Fetched records may come from another log than the expected one."""


class Overtaken(LaneError):
    """Another worker has written to the state of a partition since its lane read it."""


class TransactionStuck(LaneError):
    """A transactional id cannot begin a transaction, since its previous one has not ended in all its partitions."""


class IllegalTransition(LaneError):
    """A lane cannot go from its current state to the requested one."""

    retriable = False


class BrokerError(SchedulerError):
    """The broker cannot be reached, or a necessary topic or right is missing."""

    retriable = True


class ChangeUnconfirmed(BrokerError):
    """A change is stored (`is_stored`) or may be, but this was not confirmed in time. `advice` says what to do."""

    retriable = False

    def __init__(self, message: str, *, is_stored: bool, advice: str = "") -> None:
        stored = "it is stored" if is_stored else "it may be stored all the same"
        super().__init__(f"{message}: {stored}, so look before you repeat it{advice and f'. {advice}'}")
        self.message = message
        self.is_stored = is_stored


class BrokerUnreachable(BrokerError):
    """Nothing answers at the address of the broker."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(f"cannot reach Kafka at {bootstrap_servers}")
        self.bootstrap_servers = bootstrap_servers


class BrokerRefused(BrokerError):
    """The broker answers, but TLS or the login fails."""

    retriable = False

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(f"Kafka at {server} does not let this client in: {reason}")
        self.server = server
        self.reason = reason


class NoAnswer(BrokerError):
    """The broker does not answer a request in time."""


class BrokerStartError(BrokerError):
    """The embedded broker did not start."""

    retriable = False


class JobError(SchedulerError):
    """A job of the data pipeline failed. The message says why, and what to do."""


class ClientError(SchedulerError):
    """A client's call failed."""


class WorkerUnreachable(ClientError):
    """No worker answers at the given address."""

    retriable = True

    def __init__(self, url: str) -> None:
        super().__init__(f"cannot reach a worker at {url}")
        self.url = url
