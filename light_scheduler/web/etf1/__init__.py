"""The read API of etf1's kafka-message-scheduler and of its admin, answered from the tables of the lanes.

Its probe, its metric and the history of its admin's page are here too. All of it is there if a commands topic of the
dialect etf1 is configured, and tells of those topics only, but for the history, which has no topics.
"""
