"""A worker started by another process has exactly the settings that process meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from light_scheduler.devkit.worker_process import WorkerProcess, worker_environment
from light_scheduler.settings import Settings, load_settings


@pytest.mark.parametrize(
    "options",
    [
        {},
        {
            "commands_topics": "a:json,b",
            "lookback_minutes": "5",
            "instance_id": "one",
            "tick": "250ms",
            "stage_ahead": "0",
        },
        {"web_host": "::1", "web_allowed_hosts": "a.example,[fd00::1]"},
        {"delays": "one=a:5s:b,two=b:1m:c"},
        {"tenant_weights": "a:4,b:1", "firing_rate": "1500.5", "tenant_firing_rates": "a:0.5,b:unlimited,*:7"},
        {"lookback_minutes": "all", "missed": "fire", "log_format": "json", "max_payload_bytes": "5"},
    ],
)
def test_settings_pass_through_the_environment_unchanged(options: dict[str, Any]) -> None:
    settings = load_settings({"data_dir": "/data", **options}, environment={})
    assert load_settings(environment=worker_environment(settings, base={})) == settings


def test_an_ipv6_address_is_in_brackets_in_a_workers_url(tmp_path: Path) -> None:
    assert WorkerProcess(Settings(web_host="::1", web_port=7), tmp_path / "log").url == "http://[::1]:7"


def test_settings_of_the_parent_do_not_leak() -> None:
    settings = load_settings(environment={})
    environment = worker_environment(settings, base={"LIGHT_SCHEDULER_APP_ID": "other", "PATH": "/bin"})
    assert environment["LIGHT_SCHEDULER_APP_ID"] == settings.app_id
    assert environment["PATH"] == "/bin"


def test_a_relative_data_folder_stays_where_it_was_meant() -> None:
    settings = load_settings({"data_dir": "data"}, environment={})
    assert worker_environment(settings, base={})["LIGHT_SCHEDULER_DATA_DIR"] == str(Path("data").absolute())


def test_a_worker_has_the_application_and_the_variables_that_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("import os\nprint(os.environ['GIVEN'], flush=True)\nos._exit(7)\n")
    variables = {"GIVEN": "so it is", "PYTHONPATH": str(tmp_path)}
    settings = Settings(data_dir=tmp_path / "state")
    worker = WorkerProcess(settings, tmp_path / "log", application="other", variables=variables)

    worker.start()

    assert worker.wait(60) == worker.return_code == 7
    assert "so it is" in worker.log_end()
