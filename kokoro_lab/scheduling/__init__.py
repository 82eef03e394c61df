"""Threads and processes: who computes beside whom, with which priority, and how long it took."""
