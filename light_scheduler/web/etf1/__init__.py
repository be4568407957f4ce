"""The read API of etf1's kafka-message-scheduler and of its admin, answered from the tables of the lanes.

It is there if a commands topic of the dialect etf1 is configured, and tells of those topics only.
"""
