"""Cuts the published model into graphs and rewrites them for ONNX Runtime, one family of passes a file.

`signatures` names the tensors. Passes are built on `rewriting`, those for integers also on `quantise`.
`artefacts` finds or makes the graphs, and `derived` keeps them in the cache, in folders that are named by
`recipe_digest`.
"""
