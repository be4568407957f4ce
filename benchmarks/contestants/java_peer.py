"""A peer in Java. Its settings are passed as properties of its program."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from .peer import Peer


class JavaPeer(Peer):
    """`program` is a class in `programs`; `properties` are the settings that it reads."""

    program: ClassVar[str]
    properties: ClassVar[Mapping[str, object]]

    def java(self, *arguments: str | Path) -> list[str | Path]:
        """Return the command that runs the program with these arguments."""
        properties = (f"-D{name}={value}" for name, value in self.properties.items())
        return [*self._place.toolbox.java_program(self.program), *properties, self.program, *arguments]
