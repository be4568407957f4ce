"""Put the jar of light-4j's own Avro classes into build/light4j for the tests that use them, unless it is there.

It comes from Maven Central, and its content is pinned. Where it cannot be had, it says so and succeeds: the tests that
need it are skipped then, with the reason.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from jgo.maven import MavenContext

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from support.light4j_classes import GROUP, JAR, NAME, VERSION, is_pinned


def fetch() -> None:
    """Download the jar. Raises RuntimeError or OSError if it cannot be had, or is not the one that was pinned."""
    jar = MavenContext().project(GROUP, NAME).at_version(VERSION).artifact().resolve()
    if not is_pinned(jar):
        raise RuntimeError(f"{jar} is not the jar that was pinned: delete it and try again, or ask who changed it")
    JAR.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(jar, JAR)


def main() -> None:
    if not JAR.exists():
        try:
            fetch()
        except (OSError, RuntimeError) as error:  # requests' errors are OSErrors, jgo's are RuntimeErrors
            print(error, file=sys.stderr)
    found = JAR if JAR.exists() else "they cannot be had, and the tests that need them will be skipped"
    print(f"light-4j's classes: {found}")


if __name__ == "__main__":
    main()
