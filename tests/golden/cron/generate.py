"""Write the golden tables of cron and the list of differences: ask the Java originals. Run from `tests`:

    python -m golden.cron.generate

It needs Java 17 or newer on the path, and the network the first time (about 6 MB from Maven Central). It stops if our
answers differ where no rule of `reasons.py` explains it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import datetime
from typing import Any

import jgo

from light_scheduler.engine.cron import CronDialect

from .expressions import generated, handwritten
from .reasons import REASONS, reason
from .tables import DIALECTS, FOLDER, Table, differences, save

ORIGINALS = {
    "unix": "com.cronutils:cron-utils:9.2.1",
    "cron4j": "it.sauronsoftware.cron4j:cron4j:2.2.5",
    "quartz": "org.quartz-scheduler:quartz:2.5.2",
    "spring": "org.springframework:spring-context:6.2.19",
}
SEED = 1
GENERATED = 320
COUNT = 20
ZONES = ["UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]
STARTS = [
    int(datetime.fromisoformat(instant).timestamp() * 1000)
    for instant in (
        "2024-02-28T23:59:59.500+00:00",
        "2025-03-08T07:46:40.500+00:00",  # a gap in New York is near, later an overlap on Lord Howe
        "2025-11-01T07:00:00.000+00:00",  # an overlap in New York is near
        "2026-12-31T23:59:59.000+00:00",
        "2027-09-26T23:06:40.123+00:00",  # a gap on Lord Howe is near
    )
]


def main() -> None:
    listed: dict[str, dict[str, list[Any]]] = {}
    for dialect in DIALECTS:
        table = ask(dialect, [*handwritten(dialect), *generated(dialect, GENERATED, SEED)])
        save(dialect, table)
        listed[dialect] = {}
        for difference, (theirs, ours) in differences(dialect, table).items():
            endless = table.answers[difference.expression] == "endless"
            key = reason(dialect, difference, theirs, ours, endless=endless)
            if key is None:
                sys.exit(f"unexplained: {dialect} {difference}\n  {theirs}\n  {ours}")
            listed[dialect].setdefault(key, []).append(
                difference.expression
                if difference.zone is None
                else [difference.expression, difference.zone, difference.start]
            )
        summarise(dialect, table, listed[dialect])
    used = {key for by_reason in listed.values() for key in by_reason}
    document = {"reasons": {key: text for key, text in REASONS.items() if key in used}, "differences": listed}
    (FOLDER / "differences.json").write_text(as_lines(document), encoding="utf-8")


def ask(dialect: CronDialect, expressions: list[str]) -> Table:
    """Return the answers of a dialect's original."""
    expressions = list(dict.fromkeys(expressions))
    environment = jgo.build("+".join([*ORIGINALS.values(), "org.slf4j:slf4j-nop:2.0.17"]))
    java = shutil.which("java")
    if java is None:
        sys.exit("there is no java on the path")
    ran = subprocess.run(
        [
            *(java, "-cp", os.pathsep.join(map(str, environment.all_jars)), FOLDER / "Originals.java"),
            *(str(COUNT), ",".join(ZONES), ",".join(map(str, STARTS))),
        ],
        input="".join(f"{dialect}\t{expression}\n" for expression in expressions),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    lines = ran.stdout.splitlines()
    return Table(ORIGINALS[dialect], COUNT, ZONES, STARTS, dict(zip(expressions, map(answer, lines), strict=True)))


def answer(line: str) -> Any:
    """Return a line of Originals.java as it stands in a table. What fails at its first use is as good as refused."""
    if line in ("refused", "endless"):
        return line
    rows = [row.split() for row in line.split("\t")[1:]]
    return "refused" if any("failed" in row for row in rows) else [list(map(int, row)) for row in rows]


def summarise(dialect: CronDialect, table: Table, by_reason: dict[str, list[Any]]) -> None:
    fire = sum(not isinstance(rows, str) for rows in table.answers.values())
    reasons = ", ".join(f"{len(listed)} {key}" for key, listed in by_reason.items())
    sys.stdout.write(f"{dialect}: {len(table.answers)} expressions, {fire} fire; differences: {reasons or 'none'}\n")


def as_lines(document: dict[str, Any]) -> str:
    """Return the list of differences as JSON, a line each."""
    reasons = json.dumps(document["reasons"], indent=2)
    dialects = ",\n".join(
        f'  "{dialect}": {{\n'
        + ",\n".join(
            f'    "{key}": [\n' + ",\n".join(f"      {json.dumps(each)}" for each in listed) + "\n    ]"
            for key, listed in by_reason.items()
        )
        + "\n  }"
        for dialect, by_reason in document["differences"].items()
    )
    return f'{{"reasons": {reasons},\n"differences": {{\n{dialects}\n}}}}\n'


if __name__ == "__main__":
    main()
