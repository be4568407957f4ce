"""`up` runs a broker of its own."""

from __future__ import annotations

from light_scheduler.cli.up import _worker
from light_scheduler.settings import load_settings


def test_workers_of_up_log_in_to_nothing_whatever_the_settings_say_of_other_brokers() -> None:
    environment = {
        "LIGHT_SCHEDULER_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "LIGHT_SCHEDULER_SASL_MECHANISM": "PLAIN",
        "LIGHT_SCHEDULER_SASL_USERNAME": "user",
        "LIGHT_SCHEDULER_SASL_PASSWORD": "password",
    }
    settings = _worker(load_settings(environment=environment), 9092, 1).settings
    assert not settings.connection.is_secured
    assert settings.sasl_password is None
