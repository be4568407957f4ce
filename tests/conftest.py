"""Shared fixtures: one embedded broker per run (see `light_scheduler.devkit.pytest_plugin`)."""
