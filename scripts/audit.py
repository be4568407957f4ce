"""Check what is shipped: dependencies (licences, bill of materials, known vulnerabilities), container and chart.

Creates two environments in build/ from the lock files: `audit`, with the tools, and `runtime`, with exactly what a
worker needs. Exit codes: 0 all is well, 1 a check failed, 2 the advisory database did not answer for every package. Run
by `make audit`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
RUNTIME_LOCK = "requirements-runtime.lock"
BILL = BUILD / "sbom.cdx.json"
MANIFESTS = ROOT / "tests" / "golden" / "helm"
KUBERNETES = ("1.27", "1.37")
"""The oldest and the newest version whose schemas the chart must satisfy."""
SCHEMAS = {"vendor.compose-spec": "docker-compose.yml", "vendor.github-workflows": ".github/workflows/*.yml"}
"""check-jsonschema's names of built-in schemas, and the files to validate with them."""
OPERATOR_GROUP = "monitoring.coreos.com/"
OPERATOR_SCHEMAS = ROOT / "deploy" / "schemas"
"""Written by scripts/operator_schemas.py: kind -> schema."""
DONE, FAILED, UNKNOWN = 0, 1, 2
ELSEWHERE = "Run `make audit` where the package index itself answers, not a mirror of it"
VULNERABLE = "pyyaml==5.3"
"""It will always have known vulnerabilities. A database that knows none for it contains no advisories."""


class Answer(NamedTuple):
    """The result of a check (DONE, FAILED or UNKNOWN), and its message."""

    status: int
    text: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--unreachable",
        choices=("fail", "warn"),
        default="fail",
        help="What follows if the advisory database does not answer: exit code 2, or only a warning. [%(default)s]",
    )
    options = parser.parse_args()
    for name, lock in (("audit", "requirements-audit.lock"), ("runtime", RUNTIME_LOCK)):
        make_environment(BUILD / name, ROOT / lock)
    statuses = {}
    for name, check in CHECKS.items():
        answer = check()
        print(f"{name:<17} {answer.text}", flush=True)
        statuses[name] = answer.status
    if unknown := [name for name, status in statuses.items() if status == UNKNOWN]:
        print(f"WARNING: not checked: {', '.join(unknown)}. See above.", flush=True)
    sys.exit(exit_code([*statuses.values()], accepted=DONE if options.unreachable == "fail" else UNKNOWN))


def exit_code(statuses: Sequence[int], accepted: int) -> int:
    """Return the exit code of a run: failures count first, then unknown results, unless they are `accepted`."""
    if FAILED in statuses:
        return FAILED
    return UNKNOWN if UNKNOWN in statuses and accepted != UNKNOWN else DONE


def make_environment(folder: Path, lock: Path) -> None:
    """Install a lock file, with hash checks, into its own environment, unless it exists."""
    stamp, digest = folder / "made-from", hashlib.sha256(lock.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    print(f"Setting up {folder.relative_to(ROOT)}", flush=True)
    venv.create(folder, clear=True, with_pip=True)
    pip = (folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    subprocess.run([*pip, "--no-deps", "--require-hashes", "--requirement", lock], check=True)  # nosec B603 # pip
    stamp.write_text(digest)


def tool(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a tool of the audit's environment in the project's folder."""
    return subprocess.run(  # nosec B603 # a tool of the lock file
        [BUILD / "audit" / "bin" / name, *arguments], cwd=ROOT, check=False, capture_output=True, text=True
    )


def simple(done: str, ran: subprocess.CompletedProcess[str]) -> Answer:
    """Return the answer of a tool whose exit code is the whole result."""
    return Answer(DONE, done) if ran.returncode == 0 else Answer(FAILED, (ran.stdout + ran.stderr).strip())


def licences() -> Answer:
    """Compare the licence of each package with `allow-only` in pyproject.toml."""
    return simple("all allowed", tool("pip-licenses", "--python", BUILD / "runtime" / "bin" / "python"))


def bill() -> Answer:
    """Write the bill of materials, CycloneDX in JSON, validated with its schema."""
    of_project = ("--pyproject", "pyproject.toml", "--mc-type", "application", "--output-reproducible")
    ran = tool("cyclonedx-py", "environment", BUILD / "runtime", *of_project, "--validate", "--output-file", BILL)
    return simple(str(BILL.relative_to(ROOT)), ran)


def vulnerabilities() -> Answer:
    """Query the package index's advisory database for each pinned package."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as known:
        known.write(VULNERABLE)
        known.flush()
        try:
            packages = advisories(RUNTIME_LOCK, "--require-hashes")
            answer = judged(packages)
            if answer.status != DONE or any(package.get("vulns") for package in advisories(known.name, "--no-deps")):
                return answer
        except ValueError as error:
            return Answer(UNKNOWN, f"NOT CHECKED: the advisory database cannot be reached: {error}. {ELSEWHERE}")
    return Answer(UNKNOWN, f"NOT CHECKED: the database has no advisories, not even of {VULNERABLE}. {ELSEWHERE}")


def advisories(requirements: str, *options: str) -> list[dict[str, Any]]:
    """Return pip-audit's list of the packages in a file. Raises ValueError with pip-audit's last line if there is
    none."""
    how = ("--disable-pip", "--format", "json", "--progress-spinner", "off")
    ran = tool("pip-audit", "--requirement", requirements, *options, *how)
    try:
        packages: list[dict[str, Any]] = json.loads(ran.stdout)["dependencies"]
    except ValueError:
        raise ValueError((ran.stderr.strip().splitlines() or ["no output"])[-1]) from None
    return packages


def judged(packages: Sequence[Mapping[str, Any]]) -> Answer:
    """Judge pip-audit's list of packages. pip-audit itself considers packages that the database does not know as
    safe."""
    found = [
        f"{package['name']} {package['version']}: {each['id']}, fixed in {', '.join(each['fix_versions']) or 'none'}"
        for package in packages
        for each in package.get("vulns", ())
    ]
    if found:
        return Answer(FAILED, "\n".join([f"{len(found)} known", *found]))
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    if unknown or not packages:
        return Answer(UNKNOWN, f"NOT CHECKED: no answer for {len(unknown)} of {len(packages)} packages. {ELSEWHERE}")
    return Answer(DONE, f"none known in {len(packages)} packages")


def schemas() -> Answer:
    """Validate files of other programs with these programs' schemas."""
    for schema, files in SCHEMAS.items():
        ran = tool("check-jsonschema", "--builtin-schema", schema, *sorted(ROOT.glob(files)))
        if ran.returncode != 0:
            return simple("", ran)
    return Answer(DONE, "docker-compose.yml and workflows are valid")


def dockerfile() -> Answer:
    """Check the Dockerfile with hadolint."""
    return simple("no findings", tool("hadolint", "Dockerfile"))


def chart() -> Answer:
    """Validate the rendered chart with the schemas of Kubernetes and of the Prometheus operator."""
    manifests = sorted(MANIFESTS.glob("*.yaml"))
    if not manifests:
        return Answer(FAILED, f"no manifests in {MANIFESTS.relative_to(ROOT)}")
    for version in KUBERNETES:
        ran = tool("kubernetes-validate", "--strict", "--kubernetes-version", f"{version}.0", *manifests)
        if ran.returncode != 0:
            return simple("", ran)
    return operator_kinds(manifests, f"valid in Kubernetes {' and '.join(KUBERNETES)}")


def operator_kinds(manifests: Sequence[Path], done: str) -> Answer:
    """Validate the manifests of the Prometheus operator's kinds with its schemas, which Kubernetes lacks."""
    documents = [
        each
        for manifest in manifests
        for each in yaml.safe_load_all(manifest.read_text(encoding="utf-8"))
        if each is not None and each["apiVersion"].startswith(OPERATOR_GROUP)
    ]
    kinds = sorted({str(document["kind"]) for document in documents})
    if absent := [kind for kind in kinds if not (OPERATOR_SCHEMAS / f"{kind}.json").exists()]:
        return Answer(FAILED, f"no schema of {', '.join(absent)}: add them to scripts/operator_schemas.py and run it")
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            for number, document in enumerate(documents):
                if document["kind"] == kind:
                    (Path(folder) / f"{kind}-{number}.json").write_text(json.dumps(document), encoding="utf-8")
            ran = tool(
                "check-jsonschema", "--schemafile", OPERATOR_SCHEMAS / f"{kind}.json", *Path(folder).glob("*.json")
            )
        if ran.returncode != 0:
            return simple("", ran)
    return Answer(DONE, f"{done}; {' and '.join(kinds)} as the Prometheus operator takes them")


CHECKS: Mapping[str, Callable[[], Answer]] = {
    "licences": licences,
    "bill of materials": bill,
    "vulnerabilities": vulnerabilities,
    "schemas": schemas,
    "Dockerfile": dockerfile,
    "chart": chart,
}

if __name__ == "__main__":
    main()
