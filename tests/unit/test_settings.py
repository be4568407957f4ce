"""Settings: which origin wins, what each value may look like, and that a mistake is refused by its name."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from light_scheduler.errors import ConfigurationError
from light_scheduler.settings import Settings, load_settings

ROOT = Path(__file__).resolve().parents[2]


def load(name: str, value: Any) -> Any:
    """Return what a setting becomes when it is given `value` as an option."""
    return getattr(load_settings({name: value}, environment={}), name)


class TestPrecedence:
    def test_without_anything_given_the_defaults_hold(self) -> None:
        assert load_settings(environment={}) == Settings()

    def test_option_beats_environment_beats_file_beats_default(self, settings_file: Callable[[str], Path]) -> None:
        path = settings_file('web_port = 1\npartitions = 1\napp_id = "from-file"\n')
        environment = {"LIGHT_SCHEDULER_WEB_PORT": "2", "LIGHT_SCHEDULER_PARTITIONS": "2"}

        settings = load_settings({"web_port": "3"}, environment=environment, file=path)

        assert (settings.web_port, settings.partitions, settings.app_id) == (3, 2, "from-file")
        assert settings.tick == Settings().tick

    @pytest.mark.parametrize("name", ["token", "sasl_password", "ssl_key_password", "web_ssl_key_password"])
    def test_a_secret_and_the_setting_of_its_file_give_way_to_a_higher_layer(
        self, name: str, settings_file: Callable[[str], Path], tmp_path: Path
    ) -> None:
        secret, in_file = tmp_path / "secret", f"{name}_file"
        secret.write_text("held")
        login = {"sasl_mechanism": "PLAIN", "security_protocol": "SASL_PLAINTEXT", "sasl_username": "me"}
        more = login if name == "sasl_password" else {}
        certificate = {"ssl_key_password": "ssl", "web_ssl_key_password": "web_ssl"}.get(name)
        if certificate is not None:
            more = {f"{certificate}_certificate": "c", f"{certificate}_key": "k"}
            more |= {} if certificate == "web_ssl" else {"security_protocol": "SSL"}

        def given(layers: dict[str, dict[str, str]]) -> tuple[Any, Any]:
            text = "".join(f'{key} = "{value}"\n' for key, value in (more | layers.get("file", {})).items())
            environment = {f"LIGHT_SCHEDULER_{key.upper()}": value for key, value in layers.get("env", {}).items()}
            settings = load_settings(
                layers.get("option"),
                environment=environment,
                file=settings_file(text),
                context=layers.get("context"),
            )
            return getattr(settings, name), getattr(settings, in_file)

        ranks = ("file", "context", "env", "option")
        for rank, lower in enumerate(ranks):
            for higher in ranks[rank + 1 :]:
                assert given({lower: {name: "typed"}, higher: {in_file: str(secret)}}) == (None, secret)
                if higher != "option":  # secrets have no options
                    kept, file = given({lower: {in_file: str(secret)}, higher: {name: "typed"}})
                    assert (kept.reveal(), file) == ("typed", None)
        kept, file = given({"file": {name: "typed"}, "env": {in_file: ""}})
        assert (kept.reveal(), file) == ("typed", None), "an empty variable sets nothing"
        for layer in ranks:
            with pytest.raises(ConfigurationError, match=f"and so is {in_file}"):
                given({layer: {name: "typed", in_file: str(secret)}})

    def test_each_setting_knows_where_its_value_comes_from(self, settings_file: Callable[[str], Path]) -> None:
        path = settings_file('web_port = 1\npartitions = 1\napp_id = "from-file"\ntoken = "lst_0"\n')
        environment = {"LIGHT_SCHEDULER_WEB_PORT": "2", "LIGHT_SCHEDULER_PARTITIONS": "2"}
        context = {"broker": "kafka://kafka-1:9092", "token_file": str(path)}

        settings = load_settings({"web_port": "3"}, environment=environment, file=path, context=context)

        names = ("web_port", "partitions", "app_id", "broker", "token_file", "token", "tick")
        assert [settings.origin(name) for name in names] == [
            *("option", "environment", "file", "context", "context", "default", "default")
        ]

    def test_an_option_that_is_none_is_not_given(self) -> None:
        assert load_settings({"web_port": None}, environment={"LIGHT_SCHEDULER_WEB_PORT": "2"}).web_port == 2

    def test_the_file_in_the_current_folder_is_read_without_being_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "light-scheduler.toml").write_text("web_port = 7\n", encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        assert load_settings(environment={}).web_port == 7

    def test_the_environment_of_the_process_is_read_by_default(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LIGHT_SCHEDULER_APP_ID", "from-the-process")
        assert load_settings().app_id == "from-the-process"

    def test_variables_of_others_are_left_alone(self) -> None:
        assert (
            load_settings(environment={"PATH": "/bin", "LIGHT_SCHEDULE": "x", "SCHEDULER_WEB_PORT": "x"}) == Settings()
        )


class TestMistakesAreNamed:
    def test_an_unknown_name_is_refused_as_it_was_written(self, settings_file: Callable[[str], Path]) -> None:
        with pytest.raises(
            ConfigurationError, match=r"is not a setting; did you mean web_port\? Settings: app_id, broker"
        ) as in_file:
            load_settings(environment={}, file=settings_file("web_prot = 1\n"))
        with pytest.raises(ConfigurationError, match="is not a setting") as in_environment:
            load_settings(environment={"LIGHT_SCHEDULER_WEB_PROT": "1"})
        with pytest.raises(ConfigurationError, match="is not a setting") as in_options:
            load_settings({"web_prot": "1"}, environment={})
        assert [error.value.setting for error in (in_file, in_environment, in_options)] == [
            "web_prot",
            "LIGHT_SCHEDULER_WEB_PROT",
            "--web-prot",
        ]

    def test_a_bad_value_is_refused_under_the_name_it_was_given_by(self, settings_file: Callable[[str], Path]) -> None:
        with pytest.raises(ConfigurationError, match=r"setting web_port: 'x' must be a whole number from 1 to 65535"):
            load_settings(environment={}, file=settings_file('web_port = "x"\n'))
        with pytest.raises(ConfigurationError, match=r"setting LIGHT_SCHEDULER_WEB_PORT: 'x' must be"):
            load_settings(environment={"LIGHT_SCHEDULER_WEB_PORT": "x"})
        with pytest.raises(ConfigurationError, match=r"setting --web-port: 'x' must be"):
            load_settings({"web_port": "x"}, environment={})

    def test_a_bad_value_is_refused_even_where_another_origin_would_win(self) -> None:
        with pytest.raises(ConfigurationError, match="LIGHT_SCHEDULER_WEB_PORT"):
            load_settings({"web_port": "1"}, environment={"LIGHT_SCHEDULER_WEB_PORT": "x"})

    def test_a_file_may_be_as_editors_of_other_systems_write_it(self, tmp_path: Path) -> None:
        path = tmp_path / "light-scheduler.toml"
        path.write_bytes('web_port = 7\r\napp_id = "jobs"\r\n'.encode("utf-8-sig"))
        settings = load_settings(environment={}, file=path)
        assert (settings.web_port, settings.app_id) == (7, "jobs")

    @pytest.mark.parametrize("content", [b"web_port = \n", b"\xff\xfe", b"web_port = " + b"[" * 100_000])
    def test_a_file_that_is_not_toml_is_refused_by_its_path(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "broken.toml"
        path.write_bytes(content)
        with pytest.raises(ConfigurationError, match="cannot be read") as refused:
            load_settings(environment={}, file=path)
        assert refused.value.setting == str(path)

    def test_a_file_that_may_not_be_looked_for_is_refused_with_a_way_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As in a folder that may not be searched, which root may: a file may be there whose settings count."""

        def refused(path: Path, *_: Any, **__: Any) -> Any:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

        monkeypatch.setattr(Path, "exists", refused)
        monkeypatch.setattr(Path, "read_text", refused)
        with pytest.raises(ConfigurationError, match=r"cannot be read: .*Permission denied.*with --config") as implicit:
            load_settings(environment={})
        assert implicit.value.setting == "light-scheduler.toml"
        with pytest.raises(ConfigurationError, match=r"cannot be read: .*Permission denied: 'own\.toml'$"):
            load_settings(environment={}, file=Path("own.toml"))

    def test_a_file_in_the_current_folder_that_leads_nowhere_is_absent_and_one_that_cannot_be_followed_is_not(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "light-scheduler.toml"
        monkeypatch.chdir(tmp_path)
        path.symlink_to("missing.toml")
        assert load_settings(environment={}) == Settings()
        path.unlink()
        path.symlink_to(path)
        with pytest.raises(ConfigurationError, match=r"light-scheduler\.toml: cannot be read"):
            load_settings(environment={})

    def test_a_named_file_that_is_missing_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="cannot be read"):
            load_settings(environment={}, file=tmp_path / "missing.toml")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("app_id", ""),
            ("app_id", "a b"),
            ("app_id", ".."),
            ("app_id", "a" * 250),
            ("data_dir", ""),
            ("data_dir", True),
            ("data_dir", "~no-such-user-here/x"),
            ("web_host", ""),
            ("web_host", "0.0.0.0"),
            ("web_host", "0"),
            ("web_host", "::"),
            ("web_host", "[::]"),
            ("web_host", "*"),
            ("web_host", "worker:6066"),
            ("web_host", "http://worker"),
            ("web_allowed_hosts", "a b"),
            ("web_allowed_hosts", "worker:6066"),
            ("web_allowed_hosts", "*"),
            ("web_allowed_hosts", 5),
            ("web_port", "0"),
            ("web_port", "65536"),
            ("web_port", 1.0),
            ("partitions", True),
            ("partitions", "-1"),
            ("partitions", []),
            ("lookback_minutes", "-1"),
            ("lookback_minutes", "some"),
            ("missed", "ignore"),
            ("tick", "9ms"),
            ("tick", "soon"),
            ("tick", "0.5ms"),
            ("tick", -5),
            ("session_timeout", "999ms"),
            ("transaction_timeout", "1999ms"),
            ("instance_id", "a b"),
            ("instance_id", 5),
            ("tenant_weights", "acme"),
            ("tenant_weights", "acme:0"),
            ("tenant_weights", "acme:1001"),
            ("tenant_weights", "acme:1,acme:2"),
            ("tenant_weights", "*:2"),
            ("tenant_weights", {"a b": 1}),
            ("tenant_weights", {"acme": 1.5}),
            ("max_pending_per_partition", "-1"),
            ("max_pending_per_partition", "none"),
            ("firing_rate", "0"),
            ("firing_rate", "-1"),
            ("firing_rate", "nan"),
            ("firing_rate", "fast"),
            ("firing_rate", True),
            ("tenant_firing_rates", "acme:"),
            ("tenant_firing_rates", ["acme:1", "acme:1"]),
            ("tenant_firing_rates", {"acme": "0.0001"}),
            ("log_level", "LOUD"),
            ("log_format", "xml"),
        ],
    )
    def test_a_value_that_makes_no_sense_is_refused(self, name: str, value: Any) -> None:
        with pytest.raises(ConfigurationError) as refused:
            load(name, value)
        assert refused.value.setting == "--" + name.replace("_", "-")


def test_the_document_of_all_settings_is_up_to_date() -> None:
    check = subprocess.run(
        [sys.executable, ROOT / "scripts" / "configuration_docs.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert check.returncode == 0, check.stderr
