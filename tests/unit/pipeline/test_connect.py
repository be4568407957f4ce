"""Jobs use what Spark Connect has: nothing of Java behind the objects in Python."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import light_scheduler

ROOT = Path(light_scheduler.__file__).parent
MODULES = sorted([*(ROOT / "pipeline").rglob("*.py"), *(ROOT / "cli" / "pipeline").rglob("*.py")])
OF_JAVA = {"_jvm", "_jdf", "_jsc", "_jsparkSession", "_jconf", "_gateway", "_jreader", "_jwrite", "_jrdd", "_jschema"}
CONTEXT = {"sparkContext", "rdd"}
"""What a session of Spark Connect has not. Whoever asks for it has to do without."""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_job_reaches_through_to_java(path: Path) -> None:
    names = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
    assert not names & OF_JAVA
    if path.name not in ("job.py", "progress.py"):
        assert not names & CONTEXT
