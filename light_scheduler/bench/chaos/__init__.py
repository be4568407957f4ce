"""Chaos: a random workload on real workers and a real Kafka that are killed, frozen, cut off and starved of disk.

plan          what happens when, all of it drawn from a seed: commands (`workload`) and faults (`faults`)
cluster       brokers, proxies between them and the workers, worker processes
proxy         a TCP proxy that can be cut, in its own process
completions   the consumer that completes what is to be completed
watching      looks whether anything can be read before it is due
run           plays a plan, waits until nothing is left to do, and has the checker decide
checker/      decides what was missing, duplicate, early or wrong; it shares no code with what it checks
"""
