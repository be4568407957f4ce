"""How far timestamps of records are from the instants that they tell of."""

LAG_MS = 600_000
"""How much later than an instant in history a record of it is written at most: more than a transaction may take."""
