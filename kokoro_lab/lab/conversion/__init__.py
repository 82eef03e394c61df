"""Graphs for other runtimes: exports that are compared before they are written, and who could run which node."""
