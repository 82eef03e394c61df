"""Our own operators, where they can be built."""

from tests.model.conftest import library

__all__ = ["library"]
