"""Things that run as long as a `with` block lasts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Enclosed(ABC):
    """A context manager: entering starts, leaving closes; so does a start that fails."""

    @abstractmethod
    def start(self) -> Self:
        """Start, and wait until it can be used."""

    @abstractmethod
    def close(self) -> None:
        """Stop for good, and remove what is temporary."""

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
