"""The difference between the timestamps of records and the instants of their events."""

LAG_MS = 600_000
"""Maximum delay of a history record after its event: more than a transaction may take."""
