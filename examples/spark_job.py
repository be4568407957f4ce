"""The command line as a script, for `spark-submit`: `spark-submit --master yarn spark_job.py pipeline load ...`."""

from light_scheduler.cli import main

main()
