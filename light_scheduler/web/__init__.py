"""HTTP API: reads and changes schedules of the whole cluster from any worker, and shows the worker itself.

`attach` serves it from the worker's HTTP server; `cluster` declares what it needs from the worker.
"""

from typing import TYPE_CHECKING

from light_scheduler.lazy_names import lazy_names

if TYPE_CHECKING:
    from .attachment import Server, attach, install
    from .commands.channel import largest_body
    from .interfaces import Lanes, Peers
    from .kafka_topics import KafkaTopics, topics_of
    from .worker import Worker

__all__ = [
    "KafkaTopics",
    "Lanes",
    "Peers",
    "Server",
    "Worker",
    "attach",
    "install",
    "largest_body",
    "topics_of",
]

__getattr__ = lazy_names(
    __name__,
    {
        "attachment": (
            "Server",
            "attach",
            "install",
        ),
        "interfaces": (
            "Lanes",
            "Peers",
        ),
        "commands.channel": ("largest_body",),
        "kafka_topics": (
            "KafkaTopics",
            "topics_of",
        ),
        "worker": ("Worker",),
    },
)
