"""The version of the package, for whoever must not import the rest of it."""

__version__ = "0.2.0"
