"""docs/security.md gives the rights that the tests on a real broker run with."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.least_rights import (
    administrator_rights,
    consumer_rights,
    file_rights,
    grower_rights,
    pipeline_rights,
    producer_rights,
    relay_rights,
    topic_rights,
    worker_rights,
)

from light_scheduler.kafka.rights import Right, acl_commands
from light_scheduler.model import DelayRule
from light_scheduler.settings import Settings, load_settings

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "security.md"

OF_ANOTHER = load_settings({"commands_topics": "schedules:etf1"}, environment={})
DELAYED = Settings(delays=(DelayRule("reminder", "carts", 86_400_000, "carts-left"),))
OWN = len(worker_rights(Settings()))
"""How many ACLs every worker has."""


@pytest.mark.parametrize(
    ("heading", "principal", "rights"),
    [
        ("Worker", "User:scheduler", worker_rights(Settings(), ["reminders"])),
        ("Topics of another scheduler", "User:scheduler", worker_rights(OF_ANOTHER)[OWN:]),
        ("Delay rules", "User:scheduler", worker_rights(DELAYED)[OWN:]),
        ("Topics", "User:admin", topic_rights(OF_ANOTHER)),
        ("Producer", "User:shop", producer_rights(Settings())),
        ("Administrator of tenants", "User:admin", administrator_rights(Settings())),
        ("More partitions", "User:admin", grower_rights(Settings())),
        ("Producer of a file", "User:shop", file_rights(Settings())),
        ("Outbox relay", "User:relay", relay_rights(Settings())),
        ("Consumer", "User:mailer", consumer_rights(["reminders"], "mailer")),
        ("Pipeline", "User:reports", pipeline_rights(Settings(), ["reminders"], "light-scheduler-load")),
    ],
)
def test_the_document_has_the_commands_for(heading: str, principal: str, rights: list[Right]) -> None:
    section = DOCUMENT.read_text(encoding="utf-8").partition(f"\n### {heading}\n")[2].partition("\n### ")[0]
    joined = section.replace(" \\\n  ", " ").splitlines()
    assert [line for line in joined if line.startswith("kafka-acls.sh")] == acl_commands(
        rights, principal, "kafka-1:9093"
    )
