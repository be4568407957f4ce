"""Put the jars of Spark's own Kafka connector into build/spark-kafka for the tests that use it, unless they are there.

They come from Maven Central, and their content is pinned. Where they cannot be had, it says so and succeeds: the tests
that need them are skipped then, with the reason.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from jgo.maven import MavenContext

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from support.spark_kafka import FOLDER, PINNED, Jar, is_pinned, jars


def fetch(wanted: Jar) -> None:
    """Download a jar. Raises RuntimeError or OSError if it cannot be had, or is not the one that was pinned."""
    jar = MavenContext().project(wanted.group, wanted.name).at_version(wanted.version).artifact().resolve()
    if not is_pinned(jar, wanted):
        raise RuntimeError(f"{jar} is not the jar that was pinned: delete it and try again, or ask who changed it")
    shutil.copy(jar, wanted.path)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        for wanted in PINNED:
            if not is_pinned(wanted.path, wanted):
                fetch(wanted)
    except (OSError, RuntimeError) as error:  # requests' errors are OSErrors, jgo's are RuntimeErrors
        print(error, file=sys.stderr)
    found = FOLDER if jars() else "not all of it can be had, and the tests that need it will be skipped"
    print(f"Spark's Kafka connector: {found}")


if __name__ == "__main__":
    main()
