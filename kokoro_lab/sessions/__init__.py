"""Sessions of ONNX Runtime: which provider computes a graph, with which options, and what guards it."""
