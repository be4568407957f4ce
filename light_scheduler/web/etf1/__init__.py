"""The read API of etf1's kafka-message-scheduler and of its admin, answered from the tables of the lanes.

Its probe, its metric and the history of its admin's page are here too. They exist if a commands topic of the dialect
etf1 is configured. They cover those topics only, except the history, which does not know topics.
"""
