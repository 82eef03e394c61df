"""Graphs: the published model cut into stages and rewritten for this runtime, one family of passes a file.

signatures → rewriting → passes and their families, quantise → artefacts, which derived keeps by recipe_digest
"""
