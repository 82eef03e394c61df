"""Calibrations: what is measured or fitted once on the real weights and shipped with the package."""
