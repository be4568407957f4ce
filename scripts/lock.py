"""Pin every dependency with its hashes: requirements.lock for development, requirements-runtime.lock for workers,
requirements-audit.lock for `make audit`.

The first two also contain the build requirements of the package, so that an installation needs no build isolation. They
contain neither a registry nor a path. Run by `make lock`, which installs uv.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD_INPUT = "-"
SOURCES = {
    "requirements.lock": ("pyproject.toml", BUILD_INPUT, "--extra", "dev", "--extra", "broker"),
    "requirements-runtime.lock": ("pyproject.toml", BUILD_INPUT, "--extra", "avro"),
    "requirements-audit.lock": ("--group", "audit"),
}
"""The inputs of each lock file, as uv's options; BUILD_INPUT stands for the build requirements."""


def lock(name: str, sources: tuple[str, ...], build: list[str], options: list[str]) -> None:
    """Write one lock file for every platform and every Python from 3.11 on."""
    subprocess.run(  # nosec B603 # uv, of a pinned version
        [
            *(sys.executable, "-m", "uv", "pip", "compile", *sources),
            *("--output-file", name, "--quiet", "--custom-compile-command", "make lock"),
            *("--universal", "--python-version", "3.11", "--generate-hashes", "--no-emit-index-url"),
            *options,
        ],
        cwd=ROOT,
        input="\n".join(build),
        text=True,
        check=True,
    )


def main() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    for name, sources in SOURCES.items():
        lock(name, sources, build, sys.argv[1:])


if __name__ == "__main__":
    main()
