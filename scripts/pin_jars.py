"""Pin the jars of Kafka and Delta Lake: write their SHA-256 sums to light_scheduler/host/jars.sha256.

Run it after a change of their versions, and look at the difference: a file of the same name must keep its sum.
"""

from __future__ import annotations

from light_scheduler.host.jars import KAFKA, resolved
from light_scheduler.host.pins import PINS, written_pins
from light_scheduler.pipeline.delta import DELTA


def main() -> None:
    jars = [jar for library in (KAFKA, DELTA) for jar in resolved(library)]
    PINS.write_text(written_pins(jars), encoding="ascii")


if __name__ == "__main__":
    main()
