"""Every command on a page of the documents is a call that its program would take."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from support.documented import PAGES, parse_call, shell_lines, words_of

from scripts.render_chart import CHART

from .test_blocks import ROOT, documented_values, manifest

WRONG_ON_PURPOSE = "light-scheduler cancel order-1 --timeout 30"
RUN_ELSEWHERE = (".", "cd", "curl", "echo", "export", "jq", "kcat", "printf", "send", "send()", "tr", "{", "}")
"""Programs of this machine, in commands that other tests run where they are installed."""

Words = Sequence[str]


def compose() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return document


def project() -> dict[str, Any]:
    document: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return document


class TestCommands:
    """Of all pages, also those whose commands other tests run: some are left out there."""

    @pytest.mark.usefixtures("folder")
    @pytest.mark.parametrize("page", PAGES)
    def test_of_a_page_are_calls_that_their_programs_would_take(self, page: str) -> None:
        for line in shell_lines(page):
            if line == WRONG_ON_PURPOSE:
                continue
            for program, *arguments in words_of(line):
                if program not in RUN_ELSEWHERE:
                    CALLS[Path(program).name](arguments)

    def test_that_is_wrong_on_purpose_is_refused(self) -> None:
        (_, *arguments), *_ = words_of(WRONG_ON_PURPOSE)
        with pytest.raises(click.UsageError, match="has no unit"):
            parse_call(arguments)

    def test_that_has_an_unknown_option_is_refused(self) -> None:
        with pytest.raises(click.UsageError, match="--pendign"):
            parse_call(["bench", "recovery", "--pendign", "10"])

    def test_of_the_benchmark_results_are_calls(self) -> None:
        cells = re.findall(
            r"`(light-scheduler|python) ((?:bench |-m |benchmarks/)[^`>]*)",
            (ROOT / "benchmarks" / "README.md").read_text(),
        )
        assert {program for program, _ in cells} == {"light-scheduler", "python"}
        for program, cell in cells:
            CALLS[program](cell.split())


def _docker(arguments: Words) -> None:
    if arguments[:2] == ["compose", "up"]:
        assert arguments[2:] in ([], ["--build"])
    elif arguments[:2] == ["compose", "exec"]:
        service = compose()["services"][arguments[2]]
        listeners = service["environment"]["KAFKA_ADVERTISED_LISTENERS"]
        assert f"//{arguments[arguments.index('--bootstrap-server') + 1]}," in listeners
    elif arguments[:2] == ["compose", "run"]:
        options, service, *call = arguments[2:4], *arguments[4:]
        assert options == ["--rm", "--no-deps"]
        assert "build" in compose()["services"][service]
        parse_call(call)
    elif arguments[0] == "build":
        assert arguments == ["build", "-t", compose()["services"]["worker-1"]["image"], "."]
    else:
        image = arguments.index(compose()["services"]["worker-1"]["image"])
        assert arguments[0] == "run"
        assert {word for word in arguments[:image] if word.startswith("-")} <= {
            *("--rm", "--detach", "--name", "--restart", "--stop-timeout", "--read-only", "--tmpfs", "--network"),
            *("-v", "-w"),
        }
        parse_call(arguments[image + 1 :])


def _kubectl(arguments: Words) -> None:
    if arguments[:1] == ["exec"]:
        pod, dashes, program, *call = (word for word in arguments[1:] if word != "-i")
        if program == "sh":
            (_, program, *call) = call[1].split()
        assert (pod, dashes, program) == (f"{manifest('StatefulSet')['metadata']['name']}-0", "--", "light-scheduler")
        parse_call(call)
        return
    assert arguments[:3] == ["create", "secret", "generic"]
    name, *files = arguments[3:]
    assert all(file.startswith("--from-file=") for file in files)
    keys = {file.removeprefix("--from-file=").partition("=")[0] for file in files}
    if name == "light-scheduler-kafka":
        values = documented_values()["kafka"]
        assert (name, keys) == (values["existingSecret"], set(values["secretFiles"].values()))
    else:
        (endpoint,) = manifest("ServiceMonitor")["spec"]["endpoints"]
        (key,) = keys
        assert endpoint["authorization"]["credentials"] == {"name": name, "key": key}


def _helm(arguments: Words) -> None:
    release = manifest("StatefulSet")["metadata"]["labels"]["app.kubernetes.io/instance"]
    assert arguments == ["install", release, str(CHART.relative_to(ROOT)), "--values", "values.yaml"]


def _pip(arguments: Words) -> None:
    assert arguments[0] == "install"
    for argument in arguments[1:]:
        if extra := re.fullmatch(r"(?:light-scheduler|\.)\[(\w+)\]", argument):
            assert extra[1] in project()["optional-dependencies"]
        elif argument.endswith(".whl"):
            assert argument == wheel()
        elif argument.endswith(".lock"):
            assert (ROOT / argument).is_file()
        else:
            assert argument in ("psycopg", "-r", "--require-hashes", "--no-deps")


def wheel() -> str:
    return f"light_scheduler-{project()['version']}-py3-none-any.whl"


def _install(arguments: Words) -> None:
    *_, source, place = arguments
    unit = (ROOT / "deploy" / "systemd" / "light-scheduler.service").read_text(encoding="utf-8")
    assert f"--config {place}\n" in unit if source.endswith(".toml") else (ROOT / source).is_file()


def _gh(arguments: Words) -> None:
    assert arguments[:2] == ["attestation", "verify"]
    release = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "ghcr.io/${{ github.repository }}:${{ github.ref_name }}" in release
    image = f"oci://ghcr.io/OWNER/light-scheduler:v{project()['version']}"
    assert arguments[2:] in ([wheel(), "--repo", "OWNER/light-scheduler"], [image, "--repo", "OWNER/light-scheduler"])


def _make(arguments: Words) -> None:
    (target,) = arguments
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def _python(arguments: Words) -> None:
    program, *options = arguments
    if (program, *options[:1]) == ("-m", "venv") or program == "read.py":
        return
    if program == "-m":
        path, *options = options
        module = ROOT / path.replace(".", "/")
        program = str(module / "__main__.py" if module.is_dir() else module.with_suffix(".py"))
    text = (ROOT / program).read_text(encoding="utf-8")
    assert [option for option in options if option.startswith("--") and f'"{option}"' not in text] == []


def _valgrind(arguments: Words) -> None:
    _python(arguments[arguments.index("python") + 1 :])


def _spark_submit(arguments: Words) -> None:
    script = arguments.index("spark_job.py")
    assert (ROOT / "examples" / "spark_job.py").is_file()
    assert {word for word in arguments[:script] if word.startswith("--")} <= {
        "--files",
        "--conf",
        "--master",
        "--num-executors",
    }
    parse_call(arguments[script + 1 :])


def _kafka_acls(arguments: Words) -> None:
    """Those of a worker, a producer and so on are compared with its rights by test_rights_in_docs."""
    assert {word for word in arguments if word.startswith("--")} <= {
        *("--bootstrap-server", "--command-config", "--add", "--allow-principal", "--operation"),
        *("--topic", "--group", "--transactional-id", "--resource-pattern-type"),
    }
    given = [value for name, value in pairwise(arguments) if name == "--operation"]
    assert set(given) <= {"Read", "Write", "Describe", "DescribeConfigs", "Create", "Alter"}


CALLS: dict[str, Callable[[Words], None]] = {
    "docker": _docker,
    "gh": _gh,
    "helm": _helm,
    "install": _install,
    "kafka-acls.sh": _kafka_acls,
    "kubectl": _kubectl,
    "light-scheduler": parse_call,
    "make": _make,
    "pip": _pip,
    "python": _python,
    "python3": _python,
    "spark-submit": _spark_submit,
    "systemctl": lambda arguments: None,
    "valgrind": _valgrind,
}
"""By program: fails if a call is none that the program, or the files that it names, would take."""
