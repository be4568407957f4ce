"""Finds the owners of partitions in the last assignment by Faust's assignor, which every worker receives."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from faust.assignor.partition_assignor import PartitionAssignor
    from faust.types import AppT


class AssignedPeers:
    """Implements `Peers` for a Faust app. Workers are identified by their canonical URLs, which must be unique."""

    def __init__(self, app: AppT) -> None:
        self._app = app
        self._distribution: object = None
        self._owners: dict[str, dict[str, list[int]]] = {}

    @property
    def own_url(self) -> str:
        # Read each time: `faust worker --web-port` changes it after the app was created.
        return _plain(str(self._app.conf.canonical_url))

    def owners(self) -> dict[str, dict[str, list[int]]]:
        distribution = cast("PartitionAssignor", self._app.assignor).external_topics_metadata()
        if distribution is not self._distribution:  # each assignment has a new object
            self._owners = {
                _plain(url): {topic: list(partitions) for topic, partitions in topics.items()}
                for url, topics in distribution.items()
            }
            self._distribution = distribution
        return self._owners


def _plain(url: str) -> str:
    return url.rstrip("/")
