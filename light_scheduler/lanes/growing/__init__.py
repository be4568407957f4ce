"""Growing commands topics: schedules move to the partition that their key belongs to."""
