"""What jobs of the data pipeline cost: what `python -m benchmarks.pipeline` does.

cost       runs a job and measures it; `watch` sees what Spark takes meanwhile
loading    `load`, and a worker that takes the same commands in
pending    `import`, `export` and `forecast`
fired      `archive`, `audit` and `report`, of topics as `lanes` leaves them
results    costs to a document and a plot
"""
