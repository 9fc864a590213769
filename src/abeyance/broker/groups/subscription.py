"""What consumers tell one another through the coordinator, as far as the coordinator has to know (ConsumerProtocol)."""

from __future__ import annotations

import struct

CONSUMER = "consumer"
"""The protocol type of consumers. Others, Connect's for instance, are nobody's business but their own."""


def subscribed_topics(metadata: bytes) -> frozenset[str]:
    """The topics in a ConsumerProtocolSubscription of any version; none where it is no such thing."""
    try:
        (count,) = struct.unpack_from(">i", metadata, 2)
        position = 6
        topics = []
        for _ in range(min(count, len(metadata))):
            (size,) = struct.unpack_from(">h", metadata, position)
            topics.append(metadata[position + 2 : position + 2 + size].decode())
            position += 2 + size
    except (struct.error, UnicodeDecodeError):
        return frozenset()
    return frozenset(topics)
