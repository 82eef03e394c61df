"""Gates, a module each: an engine speaks the fixtures, metrics measure the sound, limits decide.

Each module has `measure` (a table with a row for each clip or pair), `judge` (the checks of such a table with
their limits), `figures` (further figures, with names that end in units) and `controls` (faults injected on
purpose, which `judge` must refuse). Their arguments depend on the gate. Most also have `judged_clips` or
`worst`: what to look at, or listen to, first.
"""
