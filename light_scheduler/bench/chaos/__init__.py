"""Chaos: a random workload on real workers and a real Kafka that are killed, frozen, disconnected and deprived of disk.

plan          all events, drawn from a seed: commands (`workload`) and faults (`faults`)
cluster       brokers, worker processes, and proxies between them
proxy         a TCP proxy that can be cut, in its own process
completions   the consumer that completes messages
watching      checks whether anything can be read before it is due
run           plays a plan, waits until no work is left, and runs the checker
checker/      decides what was missing, duplicate, early or wrong; it shares no code with what it checks
"""
