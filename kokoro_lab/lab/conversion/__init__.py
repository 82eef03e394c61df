"""Exports graphs for other runtimes, and predicts which nodes a provider takes.

exports, mil_reference                         what is written; ML Programs evaluated without a Mac
partitions, node_costs, provider_partitions    which nodes a provider takes; what nodes cost; both
"""
