"""librdkafka logs each failed connection by itself; the error that is raised says it once."""

from __future__ import annotations

import logging

SILENT = logging.Logger("light_scheduler.pipeline.kafka", logging.CRITICAL + 1)
