"""Bulk commands, which select many schedules: every partition of a commands topic applies them."""
