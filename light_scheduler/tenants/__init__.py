"""Rules of tenants in a running system: the tenants topic stores them, and each worker has a copy.

store    reads and changes the rules
changes  describes changes of rules for the history
service  runs the store in a worker: follows the topic and notifies the lanes
"""

from .store import TenantStore, opened_tenants

__all__ = ["TenantStore", "opened_tenants"]
