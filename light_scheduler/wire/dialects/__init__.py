"""The dialects of other schedulers: read records of their producers, and write messages for their consumers.

There is one module for each dialect. All of them also accept commands in the JSON form, so that schedules in their
topics can be controlled over HTTP.
"""
