"""Gates: an engine speaks the fixtures, metrics measure the files, limits decide.

Each module has the same three parts: measure (a table), judge (checks with limits), and controls
(faults put in on purpose, which the same judge must refuse).
"""
