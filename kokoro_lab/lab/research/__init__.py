"""Research: each module asks whether some change would be a gain, and a notebook shows the answer.

`turns`        times several ways to the same thing, interleaved
`continuity`   what the sentences beside a segment change of it, and what it costs to let it see them
`kernels`      each operator of ours beside ONNX Runtime's own, and beside the limit of this processor
`batched`      several windows in one pass: computing, memory and waiting
"""
