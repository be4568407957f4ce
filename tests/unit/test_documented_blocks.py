"""Every code block of the documents is known to a test, and what none can run here is checked by what it names."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Sequence
from configparser import ConfigParser
from dataclasses import fields
from fnmatch import fnmatch
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
import yaml
from click.testing import CliRunner
from support.documented import (
    DRAWINGS,
    EVERYWHERE,
    PAGES,
    TAKEN,
    parse_call,
    shell_lines,
    texts,
    words_of,
)
from support.metrics import exposed_metrics
from support.partition import command as record_of
from support.snippets import Snippet, comparable, snippets, unlike

from light_scheduler.bench.document import Document
from light_scheduler.cli import cli, delays
from light_scheduler.delays import DelayLaneStatus, DelayView
from light_scheduler.doctor.checks import check_rights, check_targets
from light_scheduler.kafka.missing_rights import MissingRight
from light_scheduler.kafka.rights import Right
from light_scheduler.lanes.status import Lateness
from light_scheduler.model.tenant_rules import TenantRules
from light_scheduler.settings import ENVIRONMENT_PREFIX, Settings, load_settings
from light_scheduler.web.change_page import ChangePage
from light_scheduler.web.dead_letter_documents import DeadLetterPage
from light_scheduler.web.documents import DelayList
from light_scheduler.wire import decode_history, dialect_named
from scripts.audit import CHECKS, KUBERNETES
from scripts.render_chart import CHART, MANIFESTS

ROOT = Path(__file__).resolve().parents[2]
DEPLOYMENT = ROOT / "docs" / "deployment.md"
METRIC = re.compile(r"\blight_scheduler_\w+")
VARIABLE = re.compile(rf"\b{ENVIRONMENT_PREFIX}([A-Z_]+)")

WRONG_ON_PURPOSE = "light-scheduler cancel order-1 --timeout 30"
RUN_ELSEWHERE = (".", "curl", "echo", "export", "jq", "kcat", "printf", "send", "send()", "tr", "{", "}")
"""Programs of this machine, in commands that other tests run where they are installed."""

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000

Words = Sequence[str]


def blocks(page: str, language: str) -> list[str]:
    return [snippet.text for snippet in snippets(ROOT / page) if snippet.language == language]


def manifest(kind: str) -> dict[str, Any]:
    """Return a recorded manifest of the chart, for a release `scheduler` in the namespace `prod`."""
    documents = yaml.safe_load_all((MANIFESTS / "secured.yaml").read_text(encoding="utf-8"))
    found: dict[str, Any] = next(document for document in documents if document and document["kind"] == kind)
    return found


def compose() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return document


def project() -> dict[str, Any]:
    document: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return document


class TestEveryBlock:
    @staticmethod
    def is_output(snippet: Snippet, before: Snippet | None) -> bool:
        return snippet.language == "" and before is not None and before.language == "sh" and before.shown is not None

    @pytest.mark.parametrize("page", PAGES)
    def test_is_known_to_a_test(self, page: str) -> None:
        known = {language for taken in TAKEN if page in taken.pages for language in taken.languages}
        before = None
        for snippet in snippets(ROOT / page):
            assert snippet.language in known, f"no test of TAKEN (tests/support/documented.py) takes:\n{snippet.text}"
            assert snippet.language or self.is_output(snippet, before), f"has to name its language:\n{snippet.text}"
            before = snippet

    @pytest.mark.parametrize("page", PAGES)
    def test_is_found(self, page: str) -> None:
        """A fence that is not understood would hide its block from all tests."""
        fences = re.findall(r"^ *```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
        assert len(fences) == 2 * len(list(snippets(ROOT / page)))

    def test_is_where_its_test_looks_for_it(self) -> None:
        for taken in TAKEN:
            assert (ROOT / taken.test).is_file()
            for page in taken.pages if len(taken.pages) < len(PAGES) else ():
                assert {snippet.language for snippet in snippets(ROOT / page)} & set(taken.languages), page

    @pytest.mark.parametrize("page", PAGES)
    def test_of_a_shell_is_one_for_bash(self, page: str) -> None:
        shell = "\n".join(blocks(page, "sh"))
        ran = subprocess.run(["bash", "-n"], input=shell, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, "")

    @pytest.mark.parametrize("page", PAGES)
    def test_of_a_language_that_is_read_everywhere_can_be_read(self, page: str, tmp_path: Path) -> None:
        readers: dict[str, Callable[[str], Any]] = {
            "json": json.loads,
            "jsonl": lambda text: [json.loads(line) for line in text.splitlines()],
            "yaml": yaml.safe_load,
            "toml": partial(_settings_of, tmp_path / "light-scheduler.toml"),
            "ini": _sections_of,
        }
        assert set(readers) == set(EVERYWHERE)
        for snippet in snippets(ROOT / page):
            if snippet.language in readers:
                readers[snippet.language](snippet.text)

    @pytest.mark.parametrize("page", PAGES)
    def test_names_metrics_and_settings_that_exist(self, page: str) -> None:
        metrics = exposed_metrics()
        for snippet in snippets(ROOT / page):
            assert set(METRIC.findall(snippet.text)) <= metrics
            assert {name.lower() for name in VARIABLE.findall(snippet.text)} <= {each.name for each in fields(Settings)}


def _settings_of(file: Path, text: str) -> None:
    """Load a settings file, save for what it says of files of another machine."""
    assert tomllib.loads(text)
    file.write_text(text, encoding="utf-8")
    load_settings(environment={}, file=file)


def _sections_of(text: str) -> None:
    """Read a unit of systemd, whose options may be given more than once."""
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(text)
    assert parser.sections()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files and the context that calls name, which the command line looks for when it reads them."""
    (tmp_path / "body.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "contexts"))
    CliRunner().invoke(cli, ["config", "add", "staging", "--url", "http://127.0.0.1:9"], catch_exceptions=False)
    return tmp_path


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
        cells = re.findall(r"`light-scheduler (bench [^`>]*)", (ROOT / "benchmarks" / "README.md").read_text())
        assert cells
        for cell in cells:
            parse_call(cell.split())


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
        assert arguments[:3] == ["run", "--rm", compose()["services"]["worker-1"]["image"]]
        parse_call(arguments[3:])


def _kubectl(arguments: Words) -> None:
    if arguments[:1] == ["exec"]:
        pod, dashes, program, *call = arguments[1:]
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
        if extra := re.fullmatch(r"light-scheduler\[(\w+)\]", argument):
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


def documented_values() -> dict[str, Any]:
    values, _ = (yaml.safe_load(block) for block in blocks("docs/deployment.md", "yaml"))
    assert isinstance(values, dict)
    return values


def unknown_values(values: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
    """Yield the names of values that Helm would refuse."""
    for name, value in values.items():
        of_name = schema["properties"].get(name)
        if of_name is None:
            yield name
        elif "properties" in of_name:
            yield from unknown_values(value, of_name)


class TestDeployment:
    def test_the_values_are_those_of_the_chart_and_name_settings(self) -> None:
        values = documented_values()
        schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
        assert list(unknown_values(values, schema)) == []
        known = {setting.name for setting in fields(Settings)}
        assert set(values["settings"]) | set(values["kafka"]["secretFiles"]) <= known

    def test_the_certificate_names_the_service_and_the_address_of_each_worker(self) -> None:
        _, certificate = (yaml.safe_load(block) for block in blocks("docs/deployment.md", "yaml"))
        spec = certificate["spec"]
        container = manifest("StatefulSet")["spec"]["template"]["spec"]["containers"][0]
        given = {each["name"]: each.get("value", "scheduler-0") for each in container["env"]}
        address = given["LIGHT_SCHEDULER_WEB_HOST"].replace("$(LIGHT_SCHEDULER_INSTANCE_ID)", "scheduler-0")
        for name in (address, "scheduler-light-scheduler.prod.svc"):
            assert any(fnmatch(name, pattern) for pattern in spec["dnsNames"]), name

    def test_the_audit_prints_what_is_shown(self) -> None:
        (shown,) = [snippet.shown for snippet in snippets(DEPLOYMENT) if snippet.text == "make audit\n"]
        assert shown is not None
        lines = {line[:17].strip(): line[18:] for line in shown.splitlines()}
        assert list(lines) == list(CHECKS)
        lock = (ROOT / "requirements-runtime.lock").read_text(encoding="utf-8")
        packages = re.findall(r"^[a-z0-9.-]+==(?!.*win32)", lock, re.MULTILINE)
        assert lines["vulnerabilities"] == f"none known in {len(packages)} packages"
        assert lines["chart"] == (
            f"valid in Kubernetes {' and '.join(KUBERNETES)}; "
            "PrometheusRule and ServiceMonitor as the Prometheus operator takes them"
        )


class AtZero:
    def now(self) -> int:
        return 0


def lane_of_delay(partition: int, forwarded: int) -> DelayLaneStatus:
    """Return a lane three records behind, whose next one is due two hours and five minutes after the epoch."""
    return DelayLaneStatus(
        rule="reminder",
        source="carts",
        partition=partition,
        state="running",
        reason=None,
        waiting=False,
        position=forwarded,
        lag=3,
        next_due=2 * HOUR + 5 * MINUTE,
        forwarded=forwarded,
        dead_letters=0,
        expired=0,
        transactions=1,
        restarts=0,
        lateness=Lateness(),
    )


class TestOutput:
    """Blocks of text, and documents that stand alone."""

    @pytest.mark.parametrize("page", DRAWINGS)
    def test_of_a_page_with_a_drawing_is_the_drawing_only(self, page: str) -> None:
        (drawing,) = texts(page)
        assert re.search(r"[│─▶]|\| .* \| .*->", drawing)

    def test_of_a_dry_run_is_what_the_lines_above_lead_to(self, folder: Path) -> None:
        (line,) = [line for line in shell_lines("docs/command-line.md") if line.startswith("light-scheduler dry-run ")]
        (folder / "commands.jsonl").write_text("".join(blocks("docs/command-line.md", "jsonl")), encoding="utf-8")
        ran = CliRunner().invoke(cli, line.split()[1:])
        shown, _ = texts("docs/command-line.md")
        assert ran.exit_code == 1
        assert sorted(comparable(ran.output)) == sorted(comparable(shown))

    def test_of_the_list_of_delays_is_as_it_is_printed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        _, expected = texts("docs/command-line.md")
        rule = DelayView(name="reminder", source="carts", delay=DAY, target="carts-left", origin="topic")
        lanes = [lane_of_delay(partition, forwarded) for partition, forwarded in enumerate((500, 500, 500, 242))]
        listed = DelayList(delays=[rule], lanes=lanes, unanswered=[])
        monkeypatch.setattr(delays, "_ask", lambda *_: listed)
        monkeypatch.setattr(delays, "SystemClock", AtZero)
        assert CliRunner().invoke(cli, ["delays", "list"]).stdout == expected

    def test_of_a_command_record_is_one_in_the_native_form(self) -> None:
        (text,) = texts("docs/native.md")
        key, value, *headers = (line[9:] for line in text.splitlines())
        pairs = [tuple(header.split(": ")) for header in headers]
        record = record_of(*((name, of.encode()) for name, of in pairs), key=key.encode(), value=value.encode())
        command = dialect_named("native").decode(record)
        assert command.id == "order-1"

    def test_of_the_doctor_is_what_it_finds(self) -> None:
        (state,) = [block for block in blocks("docs/operating.md", "json") if "unavailable_since" in block]
        shown, variables = texts("docs/operating.md")
        (found,) = check_targets({"targets": json.loads(state)})
        assert found.detail == shown.strip()
        assert set(re.findall(r"^(\w+)=", variables, re.MULTILINE)) == {
            *("LIGHT_SCHEDULER_TRACING", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SERVICE_NAME")
        }

    def test_of_the_doctor_names_the_right_that_is_missing(self, folder: Path) -> None:
        (shown,) = texts("docs/security.md")
        (folder / "password").write_text("secret")
        options = {"broker": "kafka://kafka-1:9093", "security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512"}
        options |= {"sasl_username": "scheduler", "sasl_password_file": "password"}
        settings = load_settings(options, environment={})
        topic = settings.topics.history
        missing = MissingRight(f"no right WRITE on topic {topic}", Right("topic", topic, ("Write",)))
        (found,) = check_rights(settings, [missing])
        finding, _, todo, fix = shown.splitlines()
        assert finding.split("  ") == [found.name, found.status, found.detail]
        assert (todo, fix.strip()) == ("To do:", found.fix)

    def test_of_a_benchmark_is_a_document_of_one(self) -> None:
        (block,) = blocks("docs/benchmarks.md", "json")
        assert set(json.loads(block)) == set(Document.__struct_fields__)

    def test_of_the_audit_trail_is_an_event_of_the_history(self) -> None:
        for block, by in zip(blocks("docs/access.md", "json"), ("shop", "ops"), strict=True):
            event = decode_history(block.encode())
            assert (event.by, event.address) == (by, "192.0.2.7")

    def test_of_the_list_of_changes_has_the_members_of_one(self) -> None:
        (block,) = [block for block in blocks("docs/http.md", "json") if block.startswith('{"changes"')]
        assert unlike(block, msgspec.json.encode(msgspec.json.decode(block, type=ChangePage)).decode()) == []

    def test_of_the_list_of_dead_letters_has_the_members_of_one(self) -> None:
        (block,) = [block for block in blocks("docs/http.md", "json") if block.startswith('{"dead_letters"')]
        assert unlike(block, msgspec.json.encode(msgspec.json.decode(block, type=DeadLetterPage)).decode()) == []

    def test_of_rules_is_what_the_command_shown_sets(self) -> None:
        (block,) = blocks("docs/tenants.md", "json")
        rules = msgspec.json.decode(block, type=TenantRules)
        assert (rules.targets, rules.weight) == (("shop-*",), 3)

    def test_of_dialects_is_read_by_them(self) -> None:
        _, block, _ = blocks("docs/dialects.md", "json")
        command = dialect_named("skyuk").decode(record_of(key=b"id", value=block.encode()))
        assert command.id == "id"
