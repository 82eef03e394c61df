"""What could be gained that nobody has shown: each module asks one question, and a notebook shows its answer.

`turns`        times several ways to the same thing, interleaved
`continuity`   what the sentences beside a segment change of it, and what it costs to let it see them
`kernels`      each operator of ours beside ONNX Runtime's own, and beside the limit of this processor
`batched`      several windows in one pass: computing, memory and waiting
"""
