"""Bulk commands: those for many schedules, carried out by every partition of a commands topic."""
