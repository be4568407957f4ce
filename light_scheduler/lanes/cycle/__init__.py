"""One cycle: its size, its steps, and what they do with commands and due schedules."""
