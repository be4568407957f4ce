"""Settings: declared once, for options, environment, files and documentation."""

from .declaring import default_text, is_secret, option_name
from .loading import ENVIRONMENT_PREFIX, SETTINGS_FILE, load_settings, parse_setting
from .settings import HTTP_SECURITY_SETTINGS, KAFKA_TOPICS, SECURITY_SETTINGS, Origin, Settings

__all__ = [
    "ENVIRONMENT_PREFIX",
    "HTTP_SECURITY_SETTINGS",
    "KAFKA_TOPICS",
    "SECURITY_SETTINGS",
    "SETTINGS_FILE",
    "Origin",
    "Settings",
    "default_text",
    "is_secret",
    "load_settings",
    "option_name",
    "parse_setting",
]
