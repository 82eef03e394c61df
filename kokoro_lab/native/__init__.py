"""Operators of our own in C++, and how they are built, found and named."""
