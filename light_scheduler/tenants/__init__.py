"""Rules of tenants in a running system: the tenants topic as their place, and each worker's copy of them.

store    reads the rules, and changes them
changes  what the history tells of a change of rules
service  the store in a worker: follows the topic, and tells the lanes
"""

from .store import TenantStore, opened_tenants

__all__ = ["TenantStore", "opened_tenants"]
