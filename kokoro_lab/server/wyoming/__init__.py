"""Wyoming, the protocol by which Home Assistant speaks: events over TCP; a connection is a conversation."""
