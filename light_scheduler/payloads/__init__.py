"""Payloads for people: decoded by the user's hook, as Avro or as JSON, and without the fields that are masked.

Decoding runs in its own process (`process`): what a payload or a hook does there costs the worker nothing.
"""
