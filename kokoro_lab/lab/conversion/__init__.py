"""Graphs for other runtimes: exports, compared before they are written, and who could run which node.

exports, mil_reference                         what is written; an ML Program evaluated without a Mac
partitions, node_costs, provider_partitions    which nodes a provider takes; what these cost; both
"""
