"""Jobs with secrets in their settings, in a Spark of their own: nothing that they write or show has a secret in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from support import spark_kafka
from support.acls import grant
from support.least_rights import pipeline_rights
from support.ledger import Ledger, delivered_ledger
from support.planted import OF_KAFKA, found_in
from support.secured import SecuredKafka
from support.watched_jobs import Command, Watched

from light_scheduler.kafka.topic_admin import create_topics
from light_scheduler.pipeline.kafka import FORMAT
from light_scheduler.pipeline.topics import OFFICIAL_FORMAT
from light_scheduler.settings import load_settings

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.timeout(900)]

KIND = "SCRAM-SHA-512"
LOAD = "light-scheduler-load"
WRONG = "wrong-password-that-shows-nowhere"
GIVES_UP_S = 3.0
"""How long a job waits for a broker that does not let it in."""
SMALL = [
    *("--spark-conf", "spark.sql.codegen.wholeStage=false"),
    *("--spark-conf", "spark.sql.codegen.factoryMode=NO_CODEGEN"),
    *("--spark-conf", "spark.sql.shuffle.partitions=2"),
]
"""Jobs of a second take longer if Spark compiles their plans."""
SECRETS = {**OF_KAFKA, "wrong": WRONG}


@pytest.fixture
def ledger(secured: SecuredKafka, prefix: str) -> Ledger:
    return delivered_ledger(prefix, secured.servers)


def settings_for(secured: SecuredKafka, ledger: Ledger, login: Mapping[str, str], kind: str) -> dict[str, str]:
    """Return settings, as text, of the application of a ledger, with the rights of all jobs for it and a new one."""
    options = {**login, "app_id": ledger.names.app_id, "partitions": str(ledger.partitions)}
    settings = load_settings(options, environment={})
    new = replace(settings, app_id=new_app(settings.app_id))
    for each in (settings, new):
        grant(secured.servers, secured.principal(kind), pipeline_rights(each, [ledger.target], LOAD))
    create_topics(replace(load_settings({"broker": f"kafka://{secured.servers}"}, environment={}), app_id=new.app_id))
    return options


def new_app(app_id: str) -> str:
    return f"{app_id}-new"


def reading(format: str) -> list[str]:
    if format == OFFICIAL_FORMAT and not spark_kafka.jars():
        pytest.skip("`make sparkkafka` gets Spark's own Kafka connector, where there is Maven Central")
    return ["--kafka-format", format, *(word for jar in spark_kafka.jars() for word in ("--jar", str(jar)))]


def leaks(parts: dict[str, bytes], signs: dict[str, str]) -> dict[str, list[str]]:
    """Return the secrets that were found, by place. Fails unless each place has what stands there in any case."""
    parts["events"] = b"".join(written for place, written in parts.items() if "/events/" in place)
    parts["files"] = "\n".join(parts).encode()
    for place, sign in signs.items():
        assert found_in(parts[place], {"sign": sign}), f"what is there is found in {place}"
    return {place: found for place, written in parts.items() if (found := found_in(written, SECRETS))}


@pytest.mark.soak
@pytest.mark.every_case
@pytest.mark.parametrize("format", [pytest.param(FORMAT, marks=pytest.mark.every_case), OFFICIAL_FORMAT])
def test_no_secret_is_in_anything_that_an_audit_writes_or_shows(
    secured: SecuredKafka, ledger: Ledger, tmp_path: Path, format: str
) -> None:
    settings = settings_for(secured, ledger, secured.settings(KIND), KIND)
    watched = Watched(tmp_path)
    places = ("--report", f"{tmp_path}/audit.html", "--faults", f"{tmp_path}/faults")
    metrics = ("--metrics-file", f"{tmp_path}/metrics.prom", "--json")
    words = ["audit", *places, *reading(format), *metrics, *watched.spark_options]
    assert watched.run_one(Command(words, settings)) == 0, watched.end()

    signs = {
        "ps": f"{tmp_path}/audit.html",
        "environment/": "spark.eventLog.dir",
        "events": "SparkListenerSQLExecutionStart",
    }
    assert leaks(watched.parts, signs) == {}


@pytest.mark.soak
@pytest.mark.parametrize(
    ("format", "kind"),
    [
        (FORMAT, KIND),
        pytest.param(FORMAT, "OAUTHBEARER", marks=pytest.mark.every_case),
        pytest.param(OFFICIAL_FORMAT, KIND, marks=pytest.mark.every_case),
    ],
)
@pytest.mark.every_case
def test_no_secret_is_in_anything_that_any_other_job_writes_or_shows(
    secured: SecuredKafka, ledger: Ledger, tmp_path: Path, format: str, kind: str
) -> None:
    with_key = format == FORMAT and kind != "OAUTHBEARER"
    login = secured.settings_with_both(kind) if with_key else secured.settings(kind)
    settings = settings_for(secured, ledger, login, kind)
    watched = Watched(tmp_path)
    more = [*reading(format), *watched.spark_options, *SMALL, "--metrics-table", f"{tmp_path}/metrics"]
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "rows.csv").write_text("id,at\nid-1,2100-01-01T00:00:00Z\nid-2,never\n")
    load = ["load", f"{tmp_path}/rows", "--format", "csv", "--set", f"target-topic={ledger.target}"]
    following = ["--continuous", "--every", "1s", "--checkpoint", f"{tmp_path}/checkpoint"]
    export, archive = ["export", f"{tmp_path}/exported"], ["archive", f"{tmp_path}/archive"]
    commands = [
        (1, Command([*load, "--refused", f"{tmp_path}/refused", *more], settings)),
        (
            1,
            Command(
                [*load, *following, "--refused", f"{tmp_path}/refused-2", *more],
                settings,
                until=f"{tmp_path}/checkpoint/commits/0",
            ),
        ),
        (0, Command([*export, *more], settings)),
        (0, Command(["import", *export[1:], *more], {**settings, "app_id": new_app(settings["app_id"])})),
        (0, Command([*archive, *more], settings)),
        (0, Command(["views", *archive[1:], *more], settings)),
        (0, Command(["report", "--report", f"{tmp_path}/report.html", *more], settings)),
        (0, Command(["report", "--archive", *archive[1:], "--json", *more], settings)),
        (0, Command(["forecast", "--report", f"{tmp_path}/load.html", "--table", f"{tmp_path}/load", *more], settings)),
        *(failing([*words, *more], broken(settings, kind)) for words in (load, export, archive)),
        *(failing([*words, *more], {**settings, "broker": "kafka://127.0.0.1:1"}) for words in (load, export)),
    ]
    ended = watched.run_all([command for _, command in commands])
    assert ended == [exit_code for exit_code, _ in commands], watched.end()

    signs = {
        "ps": "support.watched_jobs",
        "environment/": "spark.eventLog.dir",
        "events": "SparkListenerSQLExecutionStart",
        "files": f"{tmp_path}/checkpoint/commits/0",
        str(watched.output): "Traceback",
    }
    assert leaks(watched.parts, signs) == {}


def failing(words: list[str], settings: Mapping[str, str]) -> tuple[int, Command]:
    """Return a command that a broker does not let in, and its exit code."""
    return 1, Command(words, settings, timeout_s=GIVES_UP_S)


def broken(settings: Mapping[str, str], kind: str) -> dict[str, str]:
    """Return settings with a login that is refused."""
    secret = "sasl_oauth_client_secret" if kind == "OAUTHBEARER" else "sasl_password"
    return {**settings, secret: WRONG}
