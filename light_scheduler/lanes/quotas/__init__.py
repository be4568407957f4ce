"""Quotas and rules of tenants in a lane, and what its partitions lend each other."""
