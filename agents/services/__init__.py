"""Services beside the lanes of a worker: the forecast, the states for Karafka, probes, and the number of partitions."""
