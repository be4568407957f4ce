"""Lanes in a simulated world: the real lane, engine, table and recovery on a Kafka, a group and a clock that are not.

    loop      an event loop whose time jumps to the next thing that happens
    kafka     logs, transactions, fencing, markers, compaction; the clients that lanes use
    group     who owns which partition, and who believes to
    node      a worker process on a machine: its lanes, its fetcher, its disk; where faults strike
    history   what happens in one run: commands and faults
    drawing   histories from a seed
    sending   a command of a history as a record
    world     everything of one history while it happens
    playing   running a history, and shrinking it
    ruled     rules of tenants, and when they change
    lending   a quota of all partitions, which lend each other room
    trouble   a target that takes nothing, slowly, or with errors, and what others must not notice of it
    model     what must have been delivered, from the commands and the commits alone
    mutants   planted bugs, each of which the model must catch

A history depends on its seed only. `python -m simulation --seed N` (with `tests` on the path) plays one again.
"""
