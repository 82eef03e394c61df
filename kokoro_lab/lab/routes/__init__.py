"""What the lab hangs into the server: `/benchmarks`; `/debug/faults` where faults are put in on purpose."""
