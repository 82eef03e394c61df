"""Wyoming, the protocol by which Home Assistant speaks: events over TCP; each connection is a conversation."""
