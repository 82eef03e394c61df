"""Graphs for other runtimes: exports, compared before they are written, and who could run which node."""
