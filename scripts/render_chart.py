"""Render the Helm chart to tests/golden/helm, once for each file of values in the chart's folder ci.

The manifests can then be checked without Helm. Each begins with a digest of its chart. Run `make helm`, and then this,
after a change of the chart.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from support.helm import find

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "deploy" / "helm" / "light-scheduler"
MANIFESTS = ROOT / "tests" / "golden" / "helm"
KUBERNETES = "1.27"
"""The oldest version that the chart supports."""


def main() -> None:
    for values in sorted((CHART / "ci").glob("*.yaml")):
        manifest = MANIFESTS / f"{values.stem.removesuffix('-values')}.yaml"
        manifest.write_text(f"# Made by scripts/render_chart.py from {digest()}\n{rendered(values)}", encoding="utf-8")


def rendered(values: Path, *options: str) -> str:
    """Return the rendered chart for a file of values, as the release `scheduler` in the namespace `prod`."""
    command = [find() or "helm", "template", "scheduler", str(CHART)]
    command += ["--namespace", "prod", "--kube-version", KUBERNETES]
    ran = subprocess.run(  # nosec B603 # the user's helm
        [*command, "--values", str(values), *options], check=True, capture_output=True, text=True
    )
    return ran.stdout


def digest() -> str:
    """Return the SHA-256 of all files of the chart, including their names."""
    found = hashlib.sha256()
    for path in sorted(path for path in CHART.rglob("*") if path.is_file()):
        found.update(f"{path.relative_to(CHART)}\0".encode() + path.read_bytes() + b"\0")
    return f"sha256:{found.hexdigest()}"


if __name__ == "__main__":
    main()
