"""What the lab hangs into the server: `/benchmarks`, and `/debug/faults` where faults are put in on purpose."""
