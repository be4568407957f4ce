"""Measuring a worker on this machine: what `light-scheduler bench` does.

    registry      which scenarios there are; nothing else is imported to list them
    scenarios/    one module each: what is set up, what is counted
    run           repeats a scenario, a measurement of the client's ceiling before each round
    stage         broker, topics and worker processes of a run, removed afterwards
    workload      the commands; `producing` sends them, `deliveries` counts what came of them
    looks         how far a worker has come, and what it cost, seen from outside
    document      the result as JSON; `table` shows it

Durations are seconds where a name ends in `_s`, ms in `_ms`; instants are UTC epoch ms.
"""
