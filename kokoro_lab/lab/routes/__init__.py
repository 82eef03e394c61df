"""Routes that the lab adds to the server: `/benchmarks`, and `/debug/faults` if faults are injected.

`listening` is a server of its own, for people who take a listening test.
"""
