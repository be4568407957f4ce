"""Quotas and rules of tenants in a lane, and lending between partitions."""
