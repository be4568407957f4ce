"""Resources that last as long as a `with` block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Enclosed(ABC):
    """A context manager: entering starts, leaving closes. If the start fails, it closes, too."""

    @abstractmethod
    def start(self) -> Self:
        """Start, and wait until it is usable."""

    @abstractmethod
    def close(self) -> None:
        """Stop permanently, and remove temporary files."""

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
