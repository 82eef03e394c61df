"""Gates: an engine speaks the fixtures, metrics measure the files, limits decide. A file a gate.

The module of each has `measure` (what was found, a row a clip, a pair, or whatever is judged), `judge` (the
checks of such a table, each with its limits), `figures` (what else it says, by names that end in units) and
`controls` (faults put in on purpose, which the same judge must refuse); which arguments they take depends on
what it judges. Most have `worst`, too: what to look at, or listen to, first.
"""
