"""The errors of light-scheduler. Those of one package only, such as the outbox, are defined there.

    SchedulerError
    ├── ConfigurationError      a setting is unknown or bad; names it
    ├── FieldError              a part of what was asked for is wrong; names the field
    │   ├── InvalidCommand      ... of a command, which cannot be understood or is not allowed
    │   ├── TenantRulesError    ... of rules of a tenant: in `model.tenant_rules`
    │   │   └── TenantWasDeleted    ... which has to be resumed first
    │   ├── TokenError          ... of a token of the HTTP API: in `access.tokens`
    │   │   └── TokenUnusable       ... of which there is none, or which has ended
    │   └── QueryError          ... of a query: in `tables.views`
    ├── FormatError             bytes of ours that cannot be read
    │   ├── FormatTooNew        ... because a newer version wrote them
    │   └── FormatTooOld        ... because an older version wrote them, and they are copies of what can be read
    ├── StateError              a worker's local state cannot be used
    │   ├── StateLocked         ... because another process holds it (retriable)
    │   ├── StateCorrupt        ... because its files are damaged: it has to be built anew (retriable)
    │   ├── StateStale          ... because it may have missed tombstones: it has to be built anew (retriable)
    │   ├── StateForeign        ... because it belongs to another application or commands topic
    │   └── StateFull           ... because there is no room for more
    ├── LaneError               a partition's data path has to start again (retriable)
    │   ├── CycleTimeout        a transaction did not finish before its deadline
    │   ├── InputInDoubt        what was fetched may come from another log than the one that was to be read
    │   ├── Overtaken           somebody else has written to the state of the partition
    │   ├── TransactionStuck    a transaction could not begin, since the one before it does not end
    │   └── IllegalTransition   a lane was asked for a move its life does not have (a bug: not retriable)
    ├── BrokerError             the broker cannot be reached or lacks what is needed (retriable)
    │   ├── BrokerUnreachable   ... because nothing answers at its address
    │   ├── BrokerRefused       ... because TLS or the login fails (not retriable)
    │   ├── ChangeUnconfirmed   ... to see that a change is stored, which may be so all the same (not retriable)
    │   ├── NoAnswer            ... because it does not answer a question in time
    │   └── BrokerStartError    the embedded broker did not come up (not retriable)
    ├── JobError                a job of the data pipeline failed
    └── ClientError
        ├── WorkerUnreachable   no worker answers at the address that was asked (retriable)
        ├── ResultTimeout       no answer came in time; the command itself stands (retriable): in `client.errors`
        └── CommandRefused      the scheduler answered `rejected` or `conflict`; carries the result: in `client.errors`

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
    """A part of what was asked for is wrong: `field` names it, `reason` says what is wrong and what would be right."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class InvalidCommand(FieldError):
    """A command cannot be understood or is not allowed.

    `field` is the name its sender used: a header, or a path in the JSON form.
    """


class FormatError(SchedulerError):
    """Stored bytes do not have the layout they should have."""


class FormatTooNew(FormatError):
    """Stored bytes were written by a newer version; they are left untouched."""


class FormatTooOld(FormatError):
    """Stored bytes have the layout of an older version; they are a copy that is made anew."""


class StateError(SchedulerError):
    """A worker's local state cannot be used."""


class StateLocked(StateError):
    """Another process holds the local state of this partition."""

    retriable = True


class StateCorrupt(StateError):
    """The files of a local copy are damaged; what they held is in the changelog."""

    retriable = True


class StateStale(StateError):
    """A local copy may have missed tombstones that the changelog does not keep any more."""

    retriable = True


class StateFull(StateError):
    """There is no room for local state."""


class StateForeign(StateError):
    """The state of a partition belongs to another application, or to another commands topic."""


class LaneError(SchedulerError):
    """The data path of a partition has to start again from its last commit."""

    retriable = True


class CycleTimeout(LaneError):
    """A transaction did not finish before its deadline."""


class InputInDoubt(LaneError):
    """What was fetched may come from another log than the intended one."""


class Overtaken(LaneError):
    """Somebody else has written to the state of a partition since its lane read it."""


class TransactionStuck(LaneError):
    """A transactional id begins no transaction: the one before it has not ended in all partitions that it touched."""


class IllegalTransition(LaneError):
    """A lane was asked for a move that its life does not have."""

    retriable = False


class BrokerError(SchedulerError):
    """The broker cannot be reached, or lacks a topic or right that is needed."""

    retriable = True


class ChangeUnconfirmed(BrokerError):
    """A change is stored (`is_stored`), or may be, though this was not seen in time. `advice` says what to do then."""

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
    """The broker answers, and TLS or the login fails."""

    retriable = False

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(f"Kafka at {server} does not let this client in: {reason}")
        self.server = server
        self.reason = reason


class NoAnswer(BrokerError):
    """The broker does not answer a question in time."""


class BrokerStartError(BrokerError):
    """The embedded broker did not come up."""

    retriable = False


class JobError(SchedulerError):
    """A job of the data pipeline failed; the message says why, and what to do."""


class ClientError(SchedulerError):
    """A client's call failed."""


class WorkerUnreachable(ClientError):
    """No worker answers at the address that was asked."""

    retriable = True

    def __init__(self, url: str) -> None:
        super().__init__(f"cannot reach a worker at {url}")
        self.url = url
