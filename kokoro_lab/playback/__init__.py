"""Plays speech as it arrives: buffering → stream → sinks → deck, and the protocol of the player.

A sender hands over 16-bit PCM whenever it has some. The deck waits until it has a little of it (the
pre-buffer), plays it in small blocks through a sink, and reports what was played: `completed` comes after the
last sample, never before.
"""
