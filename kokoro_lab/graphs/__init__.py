"""Cuts the published model into graphs, and rewrites these graphs for ONNX Runtime.

A *pass* is a function that rewrites a graph; each file `*_passes` has passes of one kind. They use the tools
of `rewriting`, and passes for integers also use `quantise`. `signatures` has the names of the tensors.
`artefacts` returns the folder with a variant's graphs, and makes them if they are missing. `derived` keeps
such folders in the cache, under names that `recipe_digest` computes.
"""
