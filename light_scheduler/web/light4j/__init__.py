"""The endpoint of light-4j's light-scheduler, answered from the tables of the lanes.

It is there if a commands topic of the dialect light4j is configured, and tells of those topics only.
"""
