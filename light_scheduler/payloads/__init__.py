"""Payloads for people: decoded by the user's hook, as Avro or as JSON, with masked fields left out.

Decoding runs in its own process (`process`), so a payload or a hook cannot harm the worker.
"""
