"""The dialects of other schedulers: their producers' records in, and the messages that their consumers expect out.

One module a dialect. Each also takes commands in the JSON form, so that HTTP can control what is pending in its topics.
"""
