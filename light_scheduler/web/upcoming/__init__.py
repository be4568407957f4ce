"""How many schedules are due when, from the counts of tables."""
