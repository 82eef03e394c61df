"""What the lab hangs into the server: `/benchmarks`; `/debug/faults` where faults are put in on purpose.

`listening` is a server of its own, for people who take a listening test.
"""
