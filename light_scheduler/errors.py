"""Every error that light-scheduler raises.

    SchedulerError
    ├── ConfigurationError      a setting is unknown or bad; names it
    ├── InvalidCommand          a command cannot be understood or is not allowed; names the field
    ├── FormatError             bytes of ours that cannot be read
    │   ├── FormatTooNew        ... because a newer version wrote them
    │   └── FormatTooOld        ... because an older version wrote them, and they are copies of what can be read
    ├── StateError              a worker's local state cannot be used
    │   ├── StateLocked         ... because another process holds it (retriable)
    │   ├── StateCorrupt        ... because its files are damaged: it has to be built anew (retriable)
    │   ├── StateStale          ... because it may have missed what is gone by now: likewise (retriable)
    │   └── StateFull           ... because there is no room for more
    ├── LaneError               a partition's data path has to start again (retriable)
    │   ├── CycleTimeout        a transaction did not finish before its deadline
    │   └── IllegalTransition   a lane was asked for a move its life does not have (a bug: not retriable)
    ├── BrokerError             the broker cannot be reached or lacks what is needed (retriable)
    │   └── BrokerStartError    the embedded broker did not come up (not retriable)
    ├── JobError                a job of the data pipeline cannot do what it was asked to
    └── ClientError
        ├── ResultTimeout       no answer came in time; the command itself stands (retriable)
        └── CommandRefused      the scheduler answered `rejected` or `conflict`; carries the result

Callers branch on classes, never on text. `retriable` says whether the same call may succeed later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from light_scheduler.client import Receipt
    from light_scheduler.model import Result


class SchedulerError(Exception):
    """Root of all errors of this package."""

    retriable: ClassVar[bool] = False


class ConfigurationError(SchedulerError):
    """A setting is unknown or has a bad value."""

    def __init__(self, setting: str, reason: str) -> None:
        super().__init__(f"setting {setting}: {reason}")
        self.setting = setting
        self.reason = reason


class InvalidCommand(SchedulerError):
    """A command cannot be understood or is not allowed.

    `field` is the name its sender used (a header, or a path in the JSON form); `reason` says what is wrong and what
    would be right.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


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


class LaneError(SchedulerError):
    """The data path of a partition has to start again from its last commit."""

    retriable = True


class CycleTimeout(LaneError):
    """A transaction did not finish before its deadline."""


class IllegalTransition(LaneError):
    """A lane was asked for a move that its life does not have."""

    retriable = False


class BrokerError(SchedulerError):
    """The broker cannot be reached, or lacks a topic or right that is needed."""

    retriable = True


class BrokerStartError(BrokerError):
    """The embedded broker did not come up."""

    retriable = False


class JobError(SchedulerError):
    """A job of the data pipeline cannot do what it was asked to; says why, and what to do."""


class ClientError(SchedulerError):
    """A client's call failed."""


class ResultTimeout(ClientError):
    """No answer came in time. The command is in the log, where `receipt` says, and will be carried out."""

    retriable = True

    def __init__(self, reason: str, receipt: Receipt) -> None:
        super().__init__(reason)
        self.receipt = receipt


class CommandRefused(ClientError):
    """The scheduler refused a command."""

    def __init__(self, result: Result) -> None:
        where = f" ({result.field})" if result.field else ""
        super().__init__(f"{result.command} {result.tenant}/{result.id}: {result.outcome}{where}: {result.reason}")
        self.result = result
