"""A run's result: the document that `--json` prints and `benchmarks/` stores."""

from __future__ import annotations

from typing import Any

import msgspec

from .figures import Figure, has_faults
from .options import Options


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """The scenario, its settings, the machine, the versions, and the figures."""

    scenario: str
    settings: Options
    machine: dict[str, Any]
    versions: dict[str, str]
    figures: dict[str, Figure]

    @property
    def has_faults(self) -> bool:
        """Whether any promise was broken in any round."""
        return has_faults(self.figures)

    def as_json(self) -> str:
        """Return the document as indented JSON, with its members in the order of declaration."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()
