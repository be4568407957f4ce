"""Lanes: the data path of a partition, from a command to its firing, in transactions."""
