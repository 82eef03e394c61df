"""Weights and voices: the catalogue of files, how they are fetched and verified, and where they are kept."""
