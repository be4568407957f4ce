"""Schedulers side by side: what `python -m benchmarks.peers` does.

    contestant    what every scheduler can be asked to do; a module each: `light`, `streams`, `db_scheduler`, `celery`,
                  `apscheduler`
    match         plays one round of one contestant: pending, steady, burst, kill
    arrivals      what was delivered and when: lines that a job wrote, or records of a topic
    figures       arrivals to figures, and figures of all rounds to one
    toolbox       what peers need, installed into a cache folder; `postgres` and `redis` are their stores
    programs/     what runs inside a peer, in its own language and environment; they import nothing of ours

Durations are seconds where a name ends in `_s`, ms in `_ms`; instants are UTC epoch ms.
"""
