"""Prints the single value that a query finds: ask_postgres.py URL QUERY."""

import sys

import psycopg

with psycopg.connect(sys.argv[1], connect_timeout=5, autocommit=True) as connection:
    row = connection.execute(sys.argv[2]).fetchone()
print(row[0] if row else "")
