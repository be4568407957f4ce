"""Generate docs/configuration.md from the declarations of the settings. With --check, fail if it is not up to date."""

from __future__ import annotations

import sys
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from light_scheduler.settings import ENVIRONMENT_PREFIX, SETTINGS_FILE, Settings, default_text, is_secret, option_name

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"

_BEFORE = f"""\
# Configuration

<!-- Made from light_scheduler/settings/settings.py by `make docs`: change the declaration there. -->

There are three ways to give a setting. An option beats the environment, the environment beats the file, and the file
beats the default. On the command line, a [context](command-line.md#config) comes between the environment and the file.

1. As an option of a command: `light-scheduler worker --web-port 6067`.
2. In the environment: `{ENVIRONMENT_PREFIX}WEB_PORT=6067`.
3. In `{SETTINGS_FILE}` in the current folder, or in the file that `--config` names: `web_port = 6067`.

A secret has two settings, such as `token` and `token_file`. If they are given in different ways, the one that beats the
other counts. If both are given in the same way, they are refused.

`faust -A light_scheduler worker` reads the environment and the file only.

An unknown name or a bad value stops the command with an error that names it. On Kubernetes, a Service with the name
`light-scheduler` adds variables such as `{ENVIRONMENT_PREFIX}SERVICE_HOST` to every pod, which are
unknown settings. Set `enableServiceLinks: false`, or give the Service another name.

A *duration* has a unit: `250ms`, `90s`, `15m`, `2h`, `7d`, or ISO 8601 such as `PT15M`. A bare number is
refused, except `0`.

"""

_AFTER = f"""
## Example

```toml
# {SETTINGS_FILE}
broker = "kafka://kafka-1:9092,kafka-2:9092"
data_dir = "/var/lib/light-scheduler"
replication_factor = 3
commands_topics = ["light-scheduler-commands", "orders-later:json"]
```
"""


def render() -> str:
    """Return the document, with one section per setting, in the order of declaration."""
    return _BEFORE + "\n".join(map(_section, fields(Settings))) + _AFTER


def _section(setting: Field[Any]) -> str:
    syntax = setting.metadata["syntax"].replace("|", chr(92) + "|")
    option = (
        "none: all users of a machine can see the options of a process"
        if is_secret(setting)
        else f"`{option_name(setting.name)} {syntax}`"
    )
    return f"""\
## `{setting.name}`

{setting.metadata["help"]}

| | |
|---|---|
| Option | {option} |
| Environment | `{ENVIRONMENT_PREFIX}{setting.name.upper()}` |
| Default | {_default(setting)} |
"""


def _default(setting: Field[Any]) -> str:
    text = default_text(setting)
    return "not set" if text is None else f"`{text}`"


def main() -> None:
    document = render()
    if "--check" not in sys.argv[1:]:
        DOCUMENT.write_text(document, encoding="utf-8")
    elif not DOCUMENT.exists() or DOCUMENT.read_text(encoding="utf-8") != document:
        sys.exit(f"docs/{DOCUMENT.name} is not what light_scheduler/settings/settings.py says: run `make docs`")


if __name__ == "__main__":
    main()
