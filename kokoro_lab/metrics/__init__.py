"""Figures of merit of a signal: arrays and a sample rate in, numbers out, never an engine.

Every metric is one function of the same shape: check the input, measure, return numbers whose unit is in
the function's name. Its docstring cites the method. The module is imported by name
(`from kokoro_lab.metrics import loudness`), so that one metric's libraries are not loaded for another's.
"""
