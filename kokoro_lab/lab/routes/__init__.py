"""Routes that the lab adds to the server: `/benchmarks`, and, if `KOKORO_FAULTS` is set, `/debug/faults`.

`listening` is a server of its own, for people who take a listening test.
"""
