"""Which worker has which partitions, as Faust's assignor told every worker with the last assignment."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from faust.assignor.partition_assignor import PartitionAssignor
    from faust.types import AppT


class AssignedPeers:
    """`Peers` over a Faust app. Workers are known by their canonical urls, which have to differ."""

    def __init__(self, app: AppT) -> None:
        self._app = app
        self._distribution: object = None
        self._owners: dict[str, dict[str, list[int]]] = {}

    @property
    def own_url(self) -> str:
        # Read each time: `faust worker --web-port` changes it after the app was made.
        return _plain(str(self._app.conf.canonical_url))

    def owners(self) -> dict[str, dict[str, list[int]]]:
        distribution = cast("PartitionAssignor", self._app.assignor).external_topics_metadata()
        if distribution is not self._distribution:  # each assignment has its own
            self._owners = {
                _plain(url): {topic: list(partitions) for topic, partitions in topics.items()}
                for url, topics in distribution.items()
            }
            self._distribution = distribution
        return self._owners


def _plain(url: str) -> str:
    return url.rstrip("/")
