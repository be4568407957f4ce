"""Measures a worker on this machine, for `light-scheduler bench`.

    registry      lists the scenarios without importing anything else
    scenarios/    one module each: its set-up, and what it counts
    run           repeats a scenario; measures the client's ceiling before each round
    stage         broker, topics and worker processes of a run, removed afterwards
    workload      the commands; `producing` sends them, `deliveries` counts the results
    looks         progress and cost of a worker, seen from outside
    document      the result as JSON; `table` shows it

Durations are seconds in names that end in `_s`, ms in `_ms`; instants are UTC epoch ms.
"""
