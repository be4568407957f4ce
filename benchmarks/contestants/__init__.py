"""Compares schedulers, for `python -m benchmarks.peers`.

    contestant    the interface of every scheduler; one module each: `light`, `streams`, `db_scheduler`, `celery`,
                  `apscheduler`
    match         plays one round of one contestant: pending, steady, burst, kill
    arrivals      deliveries and their times: lines that a job wrote, or records of a topic
    figures       computes figures from arrivals, and summarises rounds
    toolbox       installs the peers' dependencies into a cache folder; `postgres` and `redis` are their stores
    programs/     programs of the peers, in their own languages and environments; they import nothing of ours

Durations are seconds where a name ends in `_s`, ms in `_ms`; instants are UTC epoch ms.
"""
