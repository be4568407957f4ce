"""Silences librdkafka's log of each failed connection: the raised error already reports it."""

from __future__ import annotations

import logging

SILENT = logging.Logger("light_scheduler.pipeline.kafka", logging.CRITICAL + 1)
