"""Write the schemas of the Prometheus operator's kinds that the chart renders, from the operator's own Go module.

`make audit` validates the rendered chart with them. They are in the repository, so that this needs neither Go nor a
network. Needs Go; run it after a change of VERSION or KINDS.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "deploy" / "schemas"
MODULE, VERSION = "github.com/prometheus-operator/prometheus-operator", "v0.94.1"
SUM = "h1:QEIb2wenPH+SdMN1xMf8l4Pmj00YYXXI6HlbLlQWkww="
"""The module's checksum as in a go.sum; Go's checksum database has it too."""
KINDS = {"ServiceMonitor": "servicemonitors", "PrometheusRule": "prometheusrules"}


def main() -> None:
    definitions = downloaded() / "example" / "prometheus-operator-crd"
    FOLDER.mkdir(exist_ok=True)
    for kind, plural in KINDS.items():
        text = (definitions / f"monitoring.coreos.com_{plural}.yaml").read_text(encoding="utf-8")
        (version,) = yaml.safe_load(text)["spec"]["versions"]
        schema = closed(version["schema"]["openAPIV3Schema"])
        about = {"$comment": f"{kind} {version['name']} of {MODULE} {VERSION}, Apache-2.0, without descriptions"}
        (FOLDER / f"{kind}.json").write_text(json.dumps({**about, **schema}, indent=1) + "\n", encoding="utf-8")


def downloaded() -> Path:
    """Return the folder of the module, which Go has verified. Exits if it is not the pinned one."""
    go = shutil.which("go") or sys.exit("go not found: the schemas are in a module of Go")
    ran = subprocess.run(  # nosec B603 # Go
        [go, "mod", "download", "-json", f"{MODULE}@{VERSION}"], check=True, capture_output=True, text=True
    )
    module = json.loads(ran.stdout)
    if module["Sum"] != SUM:
        sys.exit(f"{MODULE} {VERSION} has the sum {module['Sum']}, not {SUM}")
    return Path(module["Dir"])


def closed(schema: Any) -> Any:
    """Return a schema without descriptions. Objects with named properties allow no others, as in the API server.

    Patterns with the flag `(?i)` are left out: only Go accepts one that is not at the beginning.
    """
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: closed(each) for name, each in schema.items() if name not in ("description", "properties")}
    if "(?i)" in str(found.get("pattern")):
        del found["pattern"]
    if (properties := schema.get("properties")) is not None:
        found["properties"] = {name: closed(each) for name, each in properties.items()}
        found.setdefault("additionalProperties", False)
    return found


if __name__ == "__main__":
    main()
