"""SHA-256 checksums of jars. Those of all jars that the package needs are shipped with it, so no server has to be
trusted.

`jars.sha256` holds them in the format of `sha256sum`. `python -m scripts.pin_jars` writes it when a version changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from light_scheduler.errors import BrokerStartError

PINS = Path(__file__).with_name("jars.sha256")


def read_pins(file: Path = PINS) -> dict[str, str]:
    """Return the SHA-256 of each jar in a file of pins, by the jar's name."""
    lines = (line.split() for line in file.read_text(encoding="ascii").splitlines())
    return {name: digest for digest, name in lines}


def written_pins(jars: Iterable[Path]) -> str:
    """Return the text of a file of pins for these jars."""
    sums = {jar.name: sha256_of(jar) for jar in jars}
    return "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))


def sha256_of(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def require_sum(name: str, found: str, pins: Mapping[str, str], advice: str) -> None:
    """Raise BrokerStartError unless a jar's SHA-256 is the pinned one."""
    wanted = pins.get(name)
    if wanted is None:
        raise BrokerStartError(
            f"{name} is not among the jars that this version knows ({PINS.name}). Delete the caches of jgo; after a "
            "change of versions run scripts/pin_jars.py"
        )
    if found != wanted:
        raise BrokerStartError(f"{name} has a wrong checksum: its SHA-256 is {found} and must be {wanted}. {advice}")
