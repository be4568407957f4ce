"""The data pipeline on Spark: load, archive, audit, forecast, report, export and import.

Each job is a module with `main(spark, options)`. What bytes and decisions mean comes from `wire` and `engine`: here is
no second implementation of them.
"""
