"""Prints topic findings for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from light_scheduler.kafka.topic_admin import TopicFinding

COLOURS = {"ok": "green", "warn": "yellow", "fail": "bold red"}
"""Colour of each state of a check."""


def print_findings(console: Console, findings: Sequence[TopicFinding]) -> None:
    """Print a table of the problems and possible improvements, followed by the commands that fix them, ready to
    copy."""
    table = Table("Topic", "", "Problem")
    for finding in findings:
        table.add_row(Text(finding.topic), Text(finding.status, COLOURS[finding.status]), Text(finding.problem))
    console.print(table)
    console.print("To do:")
    for fix in dict.fromkeys(finding.fix for finding in findings):
        console.print(Text(f"  {fix}"), soft_wrap=True)
