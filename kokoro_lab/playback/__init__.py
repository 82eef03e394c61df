"""Playing speech as it comes: buffering → stream → sinks → deck, and the protocol that a player speaks.

A sender hands over 16-bit PCM whenever it has some. The deck holds a little of it back, plays the rest in
small blocks through a sink, and says what was played: `completed` comes behind the last sample, never before.
"""
