"""Lanes: the transactional data path of a partition, from a command to its firing."""
