"""Research: each module asks whether some change would be a gain, and a notebook shows the answer.

`turns`        times several ways to compute one thing, interleaved
`continuity`   how neighbouring sentences change a segment, and what it costs to show them to the model
`kernels`      each operator of ours beside ONNX Runtime's own, and beside the limit of this processor
`pruning`      what can be cut out of residual steps, with a repair in closed form
`distillation` a student of the blocks that cost most, trained on the CPU
`candidates`   models that compute less beside the one that ships: how they sound and what they save
`fine_tune`    integers of the vocoder's blocks, trained together, and what is heard of it
`batched`      several windows in one pass: computing, memory and waiting
"""
