"""Compares engines on the same texts, interleaved, each engine in a process of its own.

    configurations    which engines                    engine_process    one of them, in its process
    comparison        all speak in turn; ratios        recommendation    which one to take

Every comparison of two engines' times in the lab is made here. The rules that decide, such as the tuner's or
the golden bands of the performance gate, are in other modules.
"""
