"""A node of several worker processes that are started, watched and stopped together, behind one HTTP port."""

from .supervisor import run

__all__ = ["run"]
