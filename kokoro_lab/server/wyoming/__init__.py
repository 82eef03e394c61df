"""Wyoming, the protocol by which Home Assistant speaks: events over TCP, one conversation a connection."""
