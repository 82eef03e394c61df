"""Turns a user's text into sentences and segments that can be spoken; each keeps its place in that text."""
