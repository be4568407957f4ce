"""The endpoint of light-4j's light-scheduler, answered from the tables of the lanes.

It exists if a commands topic of the dialect light4j is configured, and covers those topics only.
"""
