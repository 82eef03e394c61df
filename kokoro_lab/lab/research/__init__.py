"""Research: each module asks whether some change would be a gain, and a notebook shows the answer.

`turns`        times several ways to compute one thing, interleaved
`continuity`   how neighbouring sentences change a segment, and what it costs to show them to the model
`kernels`      each operator of ours beside ONNX Runtime's own, and beside the limit of this processor
`batched`      several windows in one pass: computing, memory and waiting
"""
