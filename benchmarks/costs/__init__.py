"""Measures the cost of the data pipeline's jobs, for `python -m benchmarks.pipeline`.

cost       runs a job and measures it; `watch` measures Spark's memory and processor time
loading    `load`, and a worker that accepts the same commands
pending    `import`, `export` and `forecast`; `waiting` makes their schedules
series     `forecast` of recurring schedules
fired      `archive`, `audit` and `report`, of topics in the state that `lanes` produces
"""
