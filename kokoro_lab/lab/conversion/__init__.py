"""Exports graphs for other runtimes, and predicts which nodes a provider takes.

exports, mil_reference                         what is written; an ML Program evaluated without a Mac
partitions, node_costs, provider_partitions    which nodes a provider takes; what these cost; both
"""
