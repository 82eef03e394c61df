"""Compares engines on the same texts, interleaved, each engine in a process of its own.

    configurations    parses the configurations that are compared
    engine_process    runs one engine in a process of its own
    comparison        has all engines speak, interleaved, and divides their figures
    difference        says how a text sounds beside the reference
    recommendation    says which configuration to take

Every comparison of two engines' times in the lab is made here. The rules by which the tuner and the
performance gate decide are in other modules.
"""
