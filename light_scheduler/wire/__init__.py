"""Encodes and decodes the model: commands, firings, results, history, dead letters, and the stored state.

Independent of brokers, stores and frameworks.
"""

from .dialect import Dialect, Envelope
from .dialects.named import dialect_named
from .events import (
    change_record,
    correlation_id_of,
    decode_dead_letter,
    decode_events,
    decode_history,
    decode_result,
    encode_dead_letter,
    encode_history,
    encode_result,
    history_key,
    history_key_of,
    result_headers,
)
from .firing import firing_headers, parse_firing
from .ids import derived_id, record_id, time_ordered_id
from .instants import format_instant, instant_of, parse_instant
from .json_commands import json_command
from .json_schema import command_schema
from .partitioner import partition_for
from .record import CommandRecord, UnsentRecord, with_key_of
from .trigger_fields import trigger_fields

__all__ = [
    "CommandRecord",
    "Dialect",
    "Envelope",
    "UnsentRecord",
    "change_record",
    "command_schema",
    "correlation_id_of",
    "decode_dead_letter",
    "decode_events",
    "decode_history",
    "decode_result",
    "derived_id",
    "dialect_named",
    "encode_dead_letter",
    "encode_history",
    "encode_result",
    "firing_headers",
    "format_instant",
    "history_key",
    "history_key_of",
    "instant_of",
    "json_command",
    "parse_firing",
    "parse_instant",
    "partition_for",
    "record_id",
    "result_headers",
    "time_ordered_id",
    "trigger_fields",
    "with_key_of",
]
