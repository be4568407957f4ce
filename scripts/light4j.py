"""Download the jar of light-4j's own Avro classes to build/light4j for the tests that use them, unless it exists.

It comes from Maven Central, and its content is pinned. If it is not available, it says so and succeeds; the tests that
need it are then skipped with the reason.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from support.light4j_classes import JAR


def main() -> None:
    try:
        JAR.fetch()
    except (OSError, RuntimeError) as error:  # requests' errors are OSErrors, jgo's are RuntimeErrors
        print(error, file=sys.stderr)
    found = JAR.path if JAR.is_there else "they cannot be had, and the tests that need them will be skipped"
    print(f"light-4j's classes: {found}")


if __name__ == "__main__":
    main()
