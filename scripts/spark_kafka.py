"""Download the jars of Spark's own Kafka connector to build/spark-kafka for the tests that use it, unless they exist.

They come from Maven Central, and their content is pinned. If they are not available, it says so and succeeds; the tests
that need them are then skipped with the reason.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from support.spark_kafka import FOLDER, PINNED, jars


def main() -> None:
    try:
        for wanted in PINNED:
            wanted.fetch()
    except (OSError, RuntimeError) as error:  # requests' errors are OSErrors, jgo's are RuntimeErrors
        print(error, file=sys.stderr)
    found = FOLDER if jars() else "not all of it can be had, and the tests that need it will be skipped"
    print(f"Spark's Kafka connector: {found}")


if __name__ == "__main__":
    main()
