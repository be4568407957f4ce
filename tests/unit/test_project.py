"""The project around the code: what an import loads, what a wheel holds, and that deployment files name real things."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import light_scheduler
from light_scheduler import worker_page
from light_scheduler.cli import COMMANDS, cli
from light_scheduler.host.jars import KAFKA_VERSION
from light_scheduler.settings import ENVIRONMENT_PREFIX, Settings, load_settings

ROOT = Path(__file__).resolve().parents[2]
PINNED = re.compile(r"\S+:[\w.-]+@sha256:[0-9a-f]{64}")
VARIABLE = re.compile(rf"\b{ENVIRONMENT_PREFIX}[A-Z_]+")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


class TestImports:
    @staticmethod
    def loaded_by(statement: str) -> set[str]:
        """Return the top-level modules that a fresh interpreter has loaded after a statement."""
        script = f"{statement}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        return {name.partition(".")[0] for name in json.loads(ran.stdout.splitlines()[-1])}

    def test_importing_the_package_loads_neither_faust_nor_spark_nor_the_store(self) -> None:
        loaded = self.loaded_by("import light_scheduler")
        assert "light_scheduler" in loaded
        assert not loaded & {"faust", "mode", "pyspark", "rocksdict", "aiokafka", "confluent_kafka", "aiohttp"}

    def test_importing_the_package_takes_less_than_150_ms(self) -> None:
        def best_of_five(statement: str) -> float:
            """Return the CPU time (s) of an interpreter, which others on the machine make longer and never shorter."""
            script = f"{statement}\nimport time\nprint(time.process_time())"
            ran = [subprocess.run([sys.executable, "-c", script], capture_output=True, check=True) for _ in range(5)]
            return min(float(each.stdout) for each in ran)

        assert best_of_five("import light_scheduler") - best_of_five("") < 0.150

    def test_the_client_loads_neither_faust_nor_spark_nor_the_store(self) -> None:
        loaded = self.loaded_by(
            "from light_scheduler import BlockingSchedulerClient, Firing, Outcome, Result, SchedulerClient"
        )
        assert not loaded & {"faust", "mode", "pyspark", "rocksdict"}

    def test_help_of_the_command_line_loads_no_framework(self) -> None:
        loaded = self.loaded_by("from light_scheduler.cli import cli; cli(['--help'], standalone_mode=False)")
        assert not loaded & {"faust", "pyspark", "rocksdict", "aiokafka"}

    @pytest.mark.parametrize("command", [["list"], ["get", "a"], ["delays", "list"]], ids=" ".join)
    def test_commands_that_ask_a_worker_load_no_framework_and_no_client(self, command: list[str]) -> None:
        # They are to answer in half a second, of which Faust alone would take more.
        arguments = [*command, "--url", "http://127.0.0.1:9"]
        loaded = self.loaded_by(
            "from light_scheduler.cli import cli\nfrom light_scheduler.errors import WorkerUnreachable\n"
            f"try: cli({arguments}, standalone_mode=False)\nexcept WorkerUnreachable: pass"
        )
        assert not loaded & {"faust", "mode", "aiohttp", "aiokafka", "confluent_kafka", "rocksdict", "croniter"}

    @pytest.mark.parametrize("name", light_scheduler.__all__)
    def test_every_public_name_is_there(self, name: str) -> None:
        # In an interpreter of its own: the application reads the settings of its process when it is made.
        subprocess.run([sys.executable, "-W", "ignore", "-c", f"from light_scheduler import {name}"], check=True)

    def test_an_unknown_name_is_an_attribute_error(self) -> None:
        with pytest.raises(AttributeError, match="no_such_name"):
            _ = light_scheduler.no_such_name


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    """Build the wheel from a copy, as building leaves folders behind."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        shutil.copy(ROOT / name, source)
    for name in ("light_scheduler", "agents", "tables"):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    built = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-index"),
            *("--no-deps", "--no-build-isolation", "--wheel-dir", folder, source),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return zipfile.Path(path)


class TestWheel:
    def test_it_installs_no_top_level_name_but_light_scheduler(self, wheel: zipfile.Path) -> None:
        # Other projects install modules called `agents` and `tables`.
        (metadata,) = (entry for entry in wheel.iterdir() if entry.name.endswith(".dist-info"))
        assert (metadata / "top_level.txt").read_text(encoding="utf-8").split() == ["light_scheduler"]
        assert {entry.name for entry in wheel.iterdir()} == {"light_scheduler", metadata.name}

    def test_it_holds_every_module_of_the_source_tree(self, wheel: zipfile.Path) -> None:
        package = ROOT / "light_scheduler"
        modules = {
            f"{home}{path.relative_to(folder)}"
            for folder, home in (
                (package, "light_scheduler/"),
                (ROOT / "agents", "light_scheduler/agents/"),
                (ROOT / "tables", "light_scheduler/tables/"),
            )
            for path in folder.rglob("*.py")
        }
        assert {path for path in modules if path.startswith(("light_scheduler/agents/", "light_scheduler/tables/"))}
        assert modules | {"light_scheduler/py.typed"} <= set(wheel.root.namelist())


class TestLocks:
    @pytest.mark.parametrize("name", ["requirements.lock", "requirements-runtime.lock", "requirements-audit.lock"])
    def test_every_requirement_is_pinned_with_hashes_and_names_no_place(self, name: str) -> None:
        lock = read(name)
        requirements = re.split(r"^(?=[a-z0-9])", lock, flags=re.MULTILINE)[1:]
        assert len(requirements) > 20
        for requirement in requirements:
            assert re.match(r"[a-z0-9.-]+==[^ ]+( ; [^\\]+)? \\\n    --hash=sha256:[0-9a-f]{64}", requirement), (
                requirement
            )
        assert not re.search(r"://|(?<![\w.])/\w|--index|--find-links|file:", lock)

    @pytest.mark.parametrize(
        ("name", "extras"), [("requirements.lock", ["dev", "broker"]), ("requirements-runtime.lock", [])]
    )
    def test_every_direct_requirement_of_the_project_is_in_the_lock(self, name: str, extras: list[str]) -> None:
        project = tomllib.loads(read("pyproject.toml"))
        direct = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
        for extra in extras:
            direct += project["project"]["optional-dependencies"][extra]
        wanted = {normal(requirement) for requirement in direct} - {"light-scheduler"}
        assert wanted <= {normal(line) for line in read(name).splitlines() if re.match("[a-z0-9]", line)}


def normal(requirement: str) -> str:
    """Return the normalised name of the package that a requirement names."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None
    return re.sub(r"[._-]+", "-", match[0]).lower()


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(read("docker-compose.yml"))
    return document


@pytest.fixture(scope="module")
def own(compose: dict[str, Any]) -> dict[str, Any]:
    """Return the services that run this project's image."""
    return {name: service for name, service in compose["services"].items() if service.get("build")}


class TestContainers:
    def test_every_service_has_an_image_and_starts_after_services_that_exist(self, compose: dict[str, Any]) -> None:
        services = compose["services"]
        for service in services.values():
            assert service.get("image")
            needs = service.get("depends_on", {})
            assert set(needs) <= services.keys()
            for needed, wanted in needs.items() if isinstance(needs, dict) else ():
                if wanted["condition"] == "service_healthy":
                    assert services[needed]["healthcheck"]["test"]

    def test_the_broker_is_the_version_that_is_tested_with(self, compose: dict[str, Any]) -> None:
        assert compose["services"]["kafka"]["image"].partition("@")[0] == f"apache/kafka:{KAFKA_VERSION}"

    def test_every_image_of_others_is_named_with_its_digest(self, compose: dict[str, Any]) -> None:
        used = [service["image"] for service in compose["services"].values() if "build" not in service]
        base = re.search(r"^ARG PYTHON_IMAGE=(.*)$", read("Dockerfile"), flags=re.MULTILINE)
        assert base is not None
        assert [image for image in [base[1], *used] if not PINNED.fullmatch(image)] == []

    def test_every_command_is_one_that_the_command_line_has(self, own: dict[str, Any]) -> None:
        dockerfile = read("Dockerfile")
        assert 'ENTRYPOINT ["light-scheduler"]' in dockerfile
        default = re.search(r"^CMD (\[.*\])$", dockerfile, flags=re.MULTILINE)
        assert default is not None
        for command in [json.loads(default[1]), *(service["command"] for service in own.values())]:
            assert command[0] in COMMANDS
            shown = CliRunner().invoke(cli, [*command, "--help"])
            assert shown.exit_code == 0, shown.output

    def test_every_variable_is_a_setting(self, compose: dict[str, Any]) -> None:
        known = {ENVIRONMENT_PREFIX + setting.name.upper() for setting in fields(Settings)}
        for name in ("docker-compose.yml", "Dockerfile"):
            used = set(VARIABLE.findall(read(name)))
            assert used
            assert used <= known, name

    def test_the_settings_of_every_service_are_accepted(self, own: dict[str, Any]) -> None:
        for service in own.values():
            settings = load_settings(environment=service["environment"])
            assert settings.bootstrap_servers == "kafka:19092"

    def test_workers_share_neither_state_nor_name_nor_address(self, own: dict[str, Any]) -> None:
        workers = {name: service for name, service in own.items() if service["command"] == ["worker"]}
        assert len(workers) == 2
        data_dir = re.search(rf"{ENVIRONMENT_PREFIX}DATA_DIR=(\S+)", read("Dockerfile"))
        assert data_dir is not None
        distinct = set()
        for name, worker in workers.items():
            settings = load_settings(environment=worker["environment"])
            # Others reach a worker by the name that it listens on.
            assert settings.web_host == worker["hostname"] == name
            (volume,) = worker["volumes"]
            source, target = volume.split(":")
            assert target == data_dir[1]
            distinct |= {source, settings.instance_id, worker["ports"][0]}
        assert len(distinct) == 3 * len(workers)

    def test_every_named_volume_is_declared_and_used(self, compose: dict[str, Any]) -> None:
        sources = {
            volume.split(":")[0] for service in compose["services"].values() for volume in service.get("volumes", [])
        }
        files = {source for source in sources if source.startswith("./")}
        assert [file for file in files if not (ROOT / file).exists()] == []
        assert sources - files == set(compose["volumes"])

    def test_ports_are_open_to_this_machine_only(self, compose: dict[str, Any]) -> None:
        for service in compose["services"].values():
            for port in service.get("ports", []):
                assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port)

    def test_everything_that_the_image_copies_passes_the_ignore_file(self) -> None:
        copied = set()
        for line in re.findall(r"^COPY (?!--from)(.*)$", read("Dockerfile"), flags=re.MULTILINE):
            copied |= set(line.split()[:-1])
        assert copied == {line[1:] for line in read(".dockerignore").splitlines() if line.startswith("!")}
        assert all((ROOT / name).exists() for name in copied)

    def test_the_image_runs_as_a_user_without_rights_and_checks_readiness(self) -> None:
        final = read("Dockerfile").rpartition("\nFROM ")[2]
        assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", final, flags=re.MULTILINE)
        assert "STOPSIGNAL SIGTERM" in final
        check = re.search(r"HEALTHCHECK[^\[]*(\[.*\])", final)
        assert check is not None
        assert json.loads(check[1]) == ["python", "-m", worker_page.__name__, "/ready"]


def test_every_hook_before_a_commit_runs_a_tool_of_the_environment() -> None:
    hooks = [hook for repo in yaml.safe_load(read(".pre-commit-config.yaml"))["repos"] for hook in repo["hooks"]]
    tools = {Path(hook["entry"].split()[0]) for hook in hooks}
    assert {tool.name for tool in tools} == {"ruff", "mypy", "lint-imports"}
    assert {tool.parent for tool in tools} == {Path(".venv/bin")}
    assert {hook["language"] for hook in hooks} == {"system"}


def test_every_target_of_the_makefile_explains_itself() -> None:
    makefile = read("Makefile")
    declared = re.search(r"^\.PHONY: (.*)$", makefile, flags=re.MULTILINE)
    assert declared is not None
    for target in declared[1].split():
        assert re.search(rf"^{target}:.*## .+\.$", makefile, flags=re.MULTILINE), target
