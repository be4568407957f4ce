"""Pin the jars of Kafka, Delta Lake, and the compared schedulers: write their SHA-256 checksums.

    python -m scripts.pin_jars

Run it after a change of their versions, and check the diff: a file that keeps its name must keep its checksum.
"""

from __future__ import annotations

from benchmarks.contestants import toolbox
from light_scheduler.host import pins
from light_scheduler.host.jars import KAFKA, resolved
from light_scheduler.pipeline.delta_jars import DELTA


def main() -> None:
    for file, libraries in ((pins.PINS, (KAFKA, DELTA)), (toolbox.PINS, toolbox.LIBRARIES)):
        file.write_text(pins.written_pins(jar for library in libraries for jar in resolved(library)), encoding="ascii")


if __name__ == "__main__":
    main()
