"""Commands topics that get more partitions: schedules move to the partition that their key belongs to."""
