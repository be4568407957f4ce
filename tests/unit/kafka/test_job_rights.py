"""The rights of jobs are what docs/security.md says."""

from __future__ import annotations

from pathlib import Path

import pytest

from light_scheduler.kafka.job_rights import JOBS, LOAD_NAME, READERS, Job, job_rights
from light_scheduler.kafka.rights import Right
from light_scheduler.settings import Settings, load_settings

DOCUMENT = (Path(__file__).resolve().parents[3] / "docs" / "security.md").read_text(encoding="utf-8")
RESOURCES = {"topic": "", "group": "group ", "transactional-id": "transactional id "}


def text_of(right: Right) -> str:
    """Return a right as the table has it."""
    rest = "..." if right.pattern == "prefixed" else ""
    name = f"`{right.name}{rest}`" if right.name != "TARGET" else "each target"
    return f"{RESOURCES[right.resource]}{name}: {', '.join(right.operations)}"


@pytest.mark.parametrize("job", JOBS)
def test_the_table_of_the_documents_has_them(job: Job) -> None:
    rights = job_rights(job, load_settings({}, environment={}), ["TARGET"])
    assert f"| `{job}` | {'; '.join(map(text_of, rights))} |" in DOCUMENT


def test_every_commands_topic_and_its_changelog_counts() -> None:
    settings = load_settings({"commands_topics": "orders:json,app-commands", "app_id": "app"}, environment={})
    names = {job: {right.name for right in job_rights(job, settings)} for job in JOBS}
    assert {"orders", "app-commands"} <= names["archive"] & names["audit"] & names["import"]
    changelogs = {settings.topics.changelog(each) for each in ("orders", "app-commands")}
    assert names["export"] == names["forecast"] == {*changelogs, READERS.name}
    assert names["load"] == {"app-commands", settings.topics.loads, READERS.name, LOAD_NAME}


def test_the_name_of_a_load_is_that_of_the_command_line() -> None:
    from light_scheduler.cli.pipeline.load import command

    (name,) = (option.default for option in command.params if option.name == "name")
    assert name == LOAD_NAME
    assert Settings().app_id == "light-scheduler"
