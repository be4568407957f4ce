"""The data pipeline on Spark: load, archive, audit, forecast, report, export and import.

Each job is a module with `main(spark, options)`. Formats and decisions come from `wire` and `engine`; they are not
implemented again here.
"""
