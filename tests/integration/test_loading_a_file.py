"""`schedule --from-file`, killed at any moment and started again: each row is in the commands topic once."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support import dying_loads
from support.application import Application
from support.reading import read_all

from light_scheduler.cli import cli
from light_scheduler.cli.file_position import LoadedLines, WrittenFile

pytestmark = pytest.mark.integration

CHUNK = 10
ROWS = 600
DYING = Path(dying_loads.__file__)


def write_rows(file: Path, target: str) -> tuple[list[str], list[int]]:
    """Write rows; return the ids that are sent and the lines that are refused, by the client or by the scheduler."""
    lines, ids, refused = [], [], []
    for number in range(1, ROWS + 1):
        row: dict[str, Any] = {"id": f"r-{number}", "trigger": {"at": 4_102_444_800_000}, "target": {"topic": target}}
        if number % 7 == 0:
            row["expected_version"] = 9
        if number % 7 == 0 or number % 11 == 0:
            refused.append(number)
        if number % 11 == 0:
            lines.append("nonsense")
        else:
            ids.append(row["id"])
            lines.append(json.dumps(row))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return ids, refused


async def commands_of(application: Application) -> Counter[str]:
    records = await read_all(application.bootstrap_servers, application.settings.topics.commands)
    return Counter(str(json.loads(record.value)["id"]) for record in records)


def arguments_of(application: Application, file: Path, *more: str) -> list[str]:
    kafka = ["--app-id", application.settings.app_id, "--broker", application.settings.broker]
    return ["schedule", "--from-file", str(file), *kafka, "-o", "json", *more]


async def load(application: Application, file: Path, *more: str) -> Any:
    return await asyncio.to_thread(CliRunner().invoke, cli, arguments_of(application, file, *more))


@pytest.mark.timeout(300)
@pytest.mark.soak
async def test_a_load_that_is_killed_at_any_step_sends_each_row_once(
    served: Application, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kills = 3 * (len(dying_loads.STEPS) + 1) if request.config.getoption("--soak") else len(dying_loads.STEPS) + 1
    file = tmp_path / "rows.jsonl"
    ids, refused = write_rows(file, served.target)
    given = [str(kills), "7", str(CHUNK), *arguments_of(served, file)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, DYING, *given, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()[-4_000:]
    assert set(json.loads(out)) == {*(name for _, name in dying_loads.STEPS), dying_loads.WITHIN}
    ran = await load(served, file)
    assert ran.exit_code == 1, ran.output
    assert "continues after line" in ran.stderr
    assert json.loads(ran.stdout) == {"lines": ROWS, "sent": ROWS - len(refused), "refused": len(refused)}
    assert await commands_of(served) == Counter(ids)
    told = (tmp_path / "rows.jsonl.refused.jsonl").read_text(encoding="utf-8").splitlines()
    assert sorted(json.loads(line)["line"] for line in told) == refused


async def test_one_process_at_a_time_sends_a_file(served: Application, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    write_rows(file, served.target)
    with LoadedLines(file):
        ran = await load(served, file)
    assert ran.exit_code == 2
    assert "is being sent by another process" in ran.stderr
    assert await commands_of(served) == Counter()


@pytest.mark.soak
async def test_rows_in_flight_without_a_mark_are_not_sent_blindly(served: Application, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    write_rows(file, served.target)
    with LoadedLines(file) as lines:
        lines.begin(WrittenFile("", 0))
    ran = await load(served, file)
    assert "rows after line 0 may have been sent or not" in str(ran.exception)
    assert await commands_of(served) == Counter()


async def test_rows_that_were_changed_after_they_were_sent_are_found_out(
    served: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rows.jsonl"
    write_rows(file, served.target)
    settle = LoadedLines.store
    monkeypatch.setattr(LoadedLines, "store", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    assert (await load(served, file)).exception is not None
    monkeypatch.setattr(LoadedLines, "store", settle)
    sent = await commands_of(served)
    assert sum(sent.values()) > 0
    file.write_text(file.read_text().replace('r-1"', 'R-1"'))
    ran = await load(served, file)
    assert ran.exit_code == 2
    assert "has changed since its first rows were sent" in ran.stderr
    assert await commands_of(served) == sent


@pytest.mark.parametrize(
    "is_killed", [pytest.param(False, id="done", marks=pytest.mark.soak), pytest.param(True, id="killed")]
)
async def test_rows_added_to_a_file_whose_last_line_had_no_end_are_sent(
    served: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_killed: bool
) -> None:
    rule = {"trigger": {"at": 4_102_444_800_000}, "target": {"topic": served.target}}
    a, b, c = (json.dumps({"id": id, **rule}) for id in "abc")
    file = tmp_path / "rows.jsonl"
    file.write_text(f"{a}\n{b}", encoding="utf-8")
    with monkeypatch.context() as patched:
        if is_killed:
            patched.setattr(LoadedLines, "store", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        assert (await load(served, file)).exit_code == is_killed
    file.write_text(f"{a}\n{b}\n{c}\n", encoding="utf-8")
    ran = await load(served, file)
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout) == {"lines": 3, "sent": 3, "refused": 0}
    assert await commands_of(served) == Counter("abc")
