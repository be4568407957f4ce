"""What the chart, the unit and the monitoring of a deployment say: real settings, real metrics, no rights.

The chart's manifests are recorded by scripts/render_chart.py, so Helm is needed for few of these.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from support.helm import find
from support.prometheus import required
from support.syscalls import can_confine, confined, denied_calls

from light_scheduler import worker_page
from light_scheduler.settings import ENVIRONMENT_PREFIX, Settings, load_settings
from scripts.render_chart import CHART, MANIFESTS, digest, rendered

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "systemd" / "light-scheduler.service"
METRIC = re.compile(r"\blight_scheduler_\w+")
DATA_DIR = "/var/lib/light-scheduler"

HELM = find() or ""
needs_helm = pytest.mark.skipif(not HELM, reason="there is no Helm: `make helm` builds it")


def manifests(name: str) -> dict[str, Any]:
    """Return the recorded manifests of a file of values, by kind; of Services the one with an address."""
    documents = yaml.safe_load_all((MANIFESTS / f"{name}.yaml").read_text(encoding="utf-8"))
    found = [document for document in documents if document and document["kind"] != "ServiceAccount"]
    return {document["kind"]: document for document in found if document["spec"].get("clusterIP") != "None"}


def containers(documents: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each pod's specification and its container."""
    for kind in ("StatefulSet", "Job"):
        if kind in documents:
            pod = documents[kind]["spec"]["template"]["spec"]
            yield pod, pod["containers"][0]


def settings_of(container: dict[str, Any]) -> Settings:
    """Return the settings of a container, as the program reads them."""
    of_pod = {"metadata.name": "scheduler-0"}
    environment: dict[str, str] = {}
    for each in container["env"]:
        if "value" in each:
            value = re.sub(r"\$\((\w+)\)", lambda found: environment[found[1]], each["value"])
        else:
            value = of_pod[each["valueFrom"]["fieldRef"]["fieldPath"]]
        environment[each["name"]] = value
    return load_settings(environment=environment)


class TestChart:
    def test_the_recorded_manifests_are_those_of_this_chart(self) -> None:
        recorded = sorted(MANIFESTS.glob("*.yaml"))
        assert {path.stem for path in recorded} == {"plain", "secured", "mutual-tls"}
        for path in recorded:
            first = path.read_text(encoding="utf-8").partition("\n")[0]
            assert first.endswith(digest()), f"{path} is older than the chart: run scripts/render_chart.py"

    def test_it_is_the_version_of_the_project(self) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
        assert chart["appVersion"] == project["version"]

    def test_workers_have_a_name_an_address_and_a_folder_of_their_own(self) -> None:
        pod, worker = next(containers(manifests("secured")))
        settings = settings_of(worker)
        assert worker["args"] == ["worker"]
        assert settings.instance_id == "scheduler-0"
        assert str(settings.data_dir) == DATA_DIR
        assert DATA_DIR in [mount["mountPath"] for mount in worker["volumeMounts"]]
        assert manifests("secured")["StatefulSet"]["spec"]["volumeClaimTemplates"][0]["metadata"]["name"] == "data"
        assert "scheduler-light-scheduler.prod.svc" in settings.web_allowed_hosts
        assert "scheduler-light-scheduler.prod.svc.cluster.local" in settings.web_allowed_hosts
        # A Service called light-scheduler would add variables that are unknown settings.
        assert pod["enableServiceLinks"] is False

    def test_settings_arrive_as_they_were_given(self) -> None:
        for _, container in containers(manifests("secured")):
            settings = settings_of(container)
            assert settings.bootstrap_servers == "kafka-1:9093,kafka-2:9093"
            assert (settings.max_payload_bytes, settings.session_timeout) == (5_000_000, 10_000)
            assert [topic.name for topic in settings.inputs] == ["light-scheduler-commands", "orders-later"]
            assert settings.security.sasl_password_file == Path("/run/secrets/light-scheduler/password")

    def test_variables_that_are_no_settings_arrive_as_they_were_given_and_after_all_others(self) -> None:
        values = yaml.safe_load((CHART / "ci" / "secured-values.yaml").read_text(encoding="utf-8"))
        pods = list(containers(manifests("secured")))
        assert [container["args"][0] for _, container in pods] == ["worker", "topics"]
        for _, container in pods:
            assert container["env"][-3:] == values["extraEnv"]
            assert not any(each["name"].startswith(ENVIRONMENT_PREFIX) for each in container["env"][-3:])
        for _, container in containers(manifests("plain")):
            assert all(each["name"].startswith(ENVIRONMENT_PREFIX) for each in container["env"])

    def test_secrets_are_files_of_a_secret_and_nothing_else(self) -> None:
        for pod, container in containers(manifests("secured")):
            mounted = {
                volume["name"]: volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume
            }
            expected = {"kafka": "light-scheduler-kafka", "tls": "light-scheduler-http"}
            assert mounted == (expected if container["args"] == ["worker"] else {"kafka": "light-scheduler-kafka"})
            assert {each["name"] for each in container["env"] if "secretKeyRef" in each.get("valueFrom", {})} == set()
        assert "Secret" not in manifests("secured")

    @pytest.mark.parametrize("name", ["plain", "secured"])
    def test_pods_have_no_rights_and_limits(self, name: str) -> None:
        for pod, container in containers(manifests(name)):
            assert pod["automountServiceAccountToken"] is False
            assert pod["securityContext"]["runAsNonRoot"] is True
            assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["limits"]["memory"]
            assert container["resources"]["requests"]

    def test_a_worker_is_restarted_if_it_does_not_answer_and_left_alone_while_it_restores(self) -> None:
        _, worker = next(containers(manifests("plain")))
        probes = {name: worker[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness", "readiness")}
        assert probes == {"startup": "/live", "liveness": "/live", "readiness": "/ready"}

    @pytest.mark.parametrize(
        ("name", "domain"),
        [("plain", "cluster.local"), ("secured", "cluster.local"), ("mutual-tls", "example.internal")],
    )
    def test_workers_have_names_that_survive_restarts_and_that_a_certificate_can_hold(
        self, name: str, domain: str
    ) -> None:
        """The group does not learn of another address of a static member: an address of a pod would stay there."""
        _, worker = next(containers(manifests(name)))
        assert settings_of(worker).web_host == f"scheduler-0.scheduler-light-scheduler-workers.prod.svc.{domain}"

    @pytest.mark.parametrize("name", ["secured", "mutual-tls"])
    def test_the_certificate_of_a_worker_is_in_a_secret(self, name: str) -> None:
        _, worker = next(containers(manifests(name)))
        settings = settings_of(worker)
        (folder,) = (each["mountPath"] for each in worker["volumeMounts"] if each["name"] == "tls")
        files = settings.web_ssl_certificate, settings.web_ssl_key, settings.web_ssl_ca
        assert files == tuple(Path(folder, file) for file in ("tls.crt", "tls.key", "ca.crt"))

    def test_probes_and_prometheus_ask_over_https(self) -> None:
        _, worker = next(containers(manifests("secured")))
        assert {worker[f"{name}Probe"]["httpGet"]["scheme"] for name in ("startup", "liveness", "readiness")} == {
            "HTTPS"
        }
        (endpoint,) = manifests("secured")["ServiceMonitor"]["spec"]["endpoints"]
        assert endpoint["scheme"] == "https"
        assert endpoint["tlsConfig"]["ca"]["secret"] == {"name": "light-scheduler-http", "key": "ca.crt"}

    def test_where_clients_must_show_a_certificate_workers_probe_themselves(self) -> None:
        _, worker = next(containers(manifests("mutual-tls")))
        settings = settings_of(worker)
        assert (settings.web_ssl_client_auth, settings.web_ssl_client_ca) == ("required", settings.web_ssl_ca)
        for name, path in (("startup", "/live"), ("liveness", "/live"), ("readiness", "/ready")):
            probe = worker[f"{name}Probe"]
            assert probe["exec"]["command"] == ["python", "-m", "light_scheduler.worker_page", path]
            assert probe["timeoutSeconds"] > worker_page.TIMEOUT_S
        (endpoint,) = manifests("mutual-tls")["ServiceMonitor"]["spec"]["endpoints"]
        assert endpoint["tlsConfig"]["cert"]["secret"]["name"] == "light-scheduler-prometheus"

    def test_the_api_is_open_to_workers_and_to_those_named(self) -> None:
        documents = manifests("secured")
        labels = documents["StatefulSet"]["spec"]["selector"]["matchLabels"]
        policy = documents["NetworkPolicy"]["spec"]
        assert policy["podSelector"]["matchLabels"] == labels
        assert policy["policyTypes"] == ["Ingress", "Egress"]
        ((workers, *named),) = (rule["from"] for rule in policy["ingress"])
        assert workers == {"podSelector": {"matchLabels": labels}}
        names = [peer["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] for peer in named]
        assert names == ["shop", "monitoring"]
        assert documents["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels

    @pytest.mark.parametrize(("name", "insecure"), [("plain", False), ("secured", True), ("mutual-tls", False)])
    def test_workers_start_without_a_token_only_if_the_values_say_so(self, name: str, insecure: bool) -> None:
        values = yaml.safe_load((CHART / "ci" / f"{name}-values.yaml").read_text(encoding="utf-8"))
        assert values.get("insecure", False) is insecure
        assert yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))["insecure"] is None
        _, worker = next(containers(manifests(name)))
        assert settings_of(worker).insecure is insecure

    def test_prometheus_has_a_token(self) -> None:
        (endpoint,) = manifests("secured")["ServiceMonitor"]["spec"]["endpoints"]
        assert endpoint["authorization"] == {"credentials": {"name": "light-scheduler-prometheus", "key": "token"}}

    def test_topics_are_created_before_workers_and_with_their_settings(self) -> None:
        documents = manifests("secured")
        assert documents["Job"]["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
        _, job = list(containers(documents))[1]
        assert job["args"] == ["topics", "create"]
        assert (settings_of(job).partitions, settings_of(job).replication_factor) == (4, 3)

    @needs_helm
    def test_the_recorded_manifests_are_what_helm_renders(self) -> None:
        for values in (CHART / "ci").glob("*.yaml"):
            recorded = MANIFESTS / f"{values.stem.removesuffix('-values')}.yaml"
            assert recorded.read_text(encoding="utf-8").partition("\n")[2] == rendered(values)
            subprocess.run([HELM, "lint", "--strict", CHART, "--values", values], check=True, capture_output=True)

    @needs_helm
    @pytest.mark.parametrize("option", ["tls.clientAuth=required", "settings.oidc_issuer=https://login.example.com"])
    def test_where_others_are_kept_away_the_values_need_not_say_it(self, option: str) -> None:
        text = rendered(CHART / "ci" / "secured-values.yaml", "--set", f"insecure=null,{option}")
        (workers,) = (each for each in yaml.safe_load_all(text) if each["kind"] == "StatefulSet")
        (worker,) = workers["spec"]["template"]["spec"]["containers"]
        assert {"name": "LIGHT_SCHEDULER_INSECURE", "value": "false"} in worker["env"]

    @needs_helm
    @pytest.mark.parametrize(
        ("option", "reason"),
        [
            ("insecure=null", "insecure is required"),
            ("settings.processes=4", "processes"),
            ("kafka.brokers=", "kafka.brokers is required"),
            ("kafka.existingSecret=", "kafka.existingSecret is required"),
            ("kafka.securityProtocol=TLS", "securityProtocol"),
            ("settings.web_host=0.0.0.0", "web_host"),
            ("extraEnv[0].name=LIGHT_SCHEDULER_TICK", "extraEnv"),
            ("extraEnv[1].value=null,extraEnv[1].values=x", "extraEnv"),
            ("settings.web_ssl_ca=ca.pem", "web_ssl_ca"),
            ("tls.existingSecret=,tls.clientAuth=required", "tls.existingSecret is required"),
            ("tls.clientAuth=always", "clientAuth"),
            ("replica=3", "replica"),
        ],
    )
    def test_values_that_cannot_work_are_refused_by_name(self, option: str, reason: str) -> None:
        with pytest.raises(subprocess.CalledProcessError) as caught:
            rendered(CHART / "ci" / "secured-values.yaml", "--set", option)
        assert reason in caught.value.stderr

    @needs_helm
    def test_the_dashboard_is_a_config_map_that_grafana_finds(self) -> None:
        text = rendered(CHART / "ci" / "plain-values.yaml", "--set", "grafanaDashboard.enabled=true")
        (found,) = (each for each in yaml.safe_load_all(text) if each["kind"] == "ConfigMap")
        assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert json.loads(found["data"]["light-scheduler.json"])["title"] == "light-scheduler"


class TestWorkflows:
    workflows: ClassVar = {
        path.stem: path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml")
    }
    jobs: ClassVar = yaml.safe_load(workflows["release"])["jobs"]

    @pytest.mark.parametrize("name", sorted(workflows))
    def test_actions_are_pinned_by_commit_with_their_versions_beside(self, name: str) -> None:
        used = re.findall(r"uses: (.+)", self.workflows[name])
        assert used
        assert [each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", each)] == []

    def test_what_may_sign_or_publish_runs_actions_only(self) -> None:
        trusted = {name for name, job in self.jobs.items() if "write" in job["permissions"].values()}
        assert trusted == {"attest", "publish", "image"}
        assert [name for name in trusted for step in self.jobs[name]["steps"] if "run" in step] == []

    def test_nothing_is_built_that_has_not_passed_all_checks(self) -> None:
        assert ".ci/run" in [step.get("run") for step in self.jobs["test"]["steps"]]
        needs = {name: job.get("needs") for name, job in self.jobs.items()}
        assert needs == {"test": None, "build": "test", "attest": "build", "publish": "attest", "image": "attest"}

    def test_a_night_goes_through_all_cases(self) -> None:
        (job,) = yaml.safe_load(self.workflows["night"])["jobs"].values()
        assert any({"--soak", "--every-case"} <= set(re.split(r'[\s"]+', step.get("run", ""))) for step in job["steps"])


class TestMonitoring:
    documented: ClassVar = set(METRIC.findall((ROOT / "docs" / "operating.md").read_text(encoding="utf-8")))
    """All metrics there are: a test of the documents holds that."""

    @pytest.mark.parametrize("name", ["alerts.yaml", "dashboard.json"])
    def test_every_metric_is_one_that_workers_have(self, name: str) -> None:
        used = {
            re.sub("_(bucket|sum|count)$", "", each) for each in METRIC.findall((CHART / "files" / name).read_text())
        }
        assert used
        assert used - self.documented == set()

    def test_prometheus_accepts_configuration_and_alerts(self) -> None:
        promtool = required("promtool")
        alerts = CHART / "files" / "alerts.yaml"
        subprocess.run([promtool, "check", "rules", alerts], check=True, capture_output=True)
        tests = DEPLOY / "prometheus" / "alerts.test.yaml"
        ran = subprocess.run([promtool, "test", "rules", tests], check=False, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr

    def test_compose_scrapes_each_of_its_workers(self) -> None:
        compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
        workers = {
            f"{service['environment'][f'{ENVIRONMENT_PREFIX}WEB_HOST']}:6066"
            for service in compose["services"].values()
            if service.get("command") == ["worker"]
        }
        scraped = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
        (job,) = scraped["scrape_configs"]
        assert set(job["static_configs"][0]["targets"]) == workers

    def test_grafana_is_given_the_source_and_the_dashboard(self) -> None:
        provisioned = DEPLOY / "grafana" / "provisioning"
        (source,) = yaml.safe_load((provisioned / "datasources" / "prometheus.yaml").read_text())["datasources"]
        compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
        assert source["url"] == "http://prometheus:9090"
        assert "prometheus" in compose["services"]
        (provider,) = yaml.safe_load((provisioned / "dashboards" / "light-scheduler.yaml").read_text())["providers"]
        mounted = [volume.split(":")[1] for volume in compose["services"]["grafana"]["volumes"]]
        assert any(path.startswith(provider["options"]["path"] + "/") for path in mounted)


DECODE = """
import asyncio
from light_scheduler.payloads.decoder import Decoder
from light_scheduler.payloads.job import Job

async def decode():
    decoder = Decoder("hooks:decode")
    await decoder.check()
    print((await decoder.decode(Job(payload=b"x", headers=[], topic="t"))).text)
    await decoder.close()

asyncio.run(decode())
"""


class TestUnit:
    text = UNIT.read_text(encoding="utf-8")
    service: ClassVar = dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))

    def test_every_variable_is_a_setting(self) -> None:
        variables = dict(re.findall(rf"^Environment=({ENVIRONMENT_PREFIX}\w+)=(\S+)$", self.text, re.MULTILINE))
        of_machine = {name: value.replace("%l", "machine") for name, value in variables.items()}
        settings = load_settings(environment=of_machine)
        assert (str(settings.data_dir), settings.instance_id) == (DATA_DIR, "machine")

    def test_it_runs_without_a_user_and_without_rights(self) -> None:
        assert self.service["DynamicUser"] == "yes"
        assert self.service["CapabilityBoundingSet"] == ""
        assert (self.service["ProtectSystem"], self.service["NoNewPrivileges"]) == ("strict", "yes")

    def test_it_sees_of_the_machine_what_its_own_metrics_need(self) -> None:
        """`process_...` count from when the machine was started, which is in /proc/stat."""
        assert self.service.get("ProcSubset", "all") == "all"
        assert self.service["ProtectProc"] == "invisible"

    def test_wrong_settings_end_it_and_all_else_starts_it_again(self) -> None:
        assert (self.service["Restart"], self.service["RestartPreventExitStatus"]) == ("always", "2")

    def test_however_often_it_ends_at_once_systemd_starts_it_again(self) -> None:
        of_unit = self.text.partition("[Unit]")[2].partition("[Service]")[0]
        assert re.findall(r"^StartLimit\w+=.*$", of_unit, re.MULTILINE) == ["StartLimitIntervalSec=0"]

    def test_systemd_accepts_it_and_finds_little_exposed(self, tmp_path: Path) -> None:
        if shutil.which("systemd-analyze") is None:
            pytest.skip("systemd-analyze is not installed: it comes with systemd")
        unit = tmp_path / UNIT.name
        # Its program is installed where it runs.
        unit.write_text(UNIT.read_text().replace("/opt/light-scheduler/bin/light-scheduler", "/bin/true"))
        verified = subprocess.run(["systemd-analyze", "verify", unit], check=False, capture_output=True, text=True)
        assert (verified.returncode, verified.stderr) == (0, "")
        exposed = subprocess.run(
            ["systemd-analyze", "security", "--offline=yes", "--threshold=20", unit],
            check=False,
            capture_output=True,
            text=True,
        )
        assert exposed.returncode == 0, exposed.stdout

    @pytest.mark.skipif(not can_confine(), reason="systemd-analyze or libseccomp is not installed: systemd has both")
    def test_payloads_are_decoded_under_its_filter_of_system_calls(self, tmp_path: Path) -> None:
        (tmp_path / "hooks.py").write_text("def decode(payload, headers, topic):\n    return payload.decode()\n")
        denied = denied_calls(self.text)
        assert {"mount", "reboot", "setuid", "sched_setaffinity"} <= denied
        ended = subprocess.run(
            confined(denied, "-c", DECODE), check=False, capture_output=True, text=True, timeout=60, cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"},
        )  # fmt: skip
        assert (ended.returncode, ended.stdout) == (0, "x\n"), ended.stderr
