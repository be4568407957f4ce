"""Answers of other implementations, recorded by running them."""
