"""One engine beside another: the same texts, interleaved, each in a process of its own; ratios; what to take.

    configurations    which engines                    engine_process    one of them, in its process
    comparison        all speak in turn; ratios        recommendation    which one to take

Nothing else in the lab compares two engines by their times. What a comparison is decided by, such as the
tuner's rule or the golden bands of the performance gate, stands with who decides.
"""
