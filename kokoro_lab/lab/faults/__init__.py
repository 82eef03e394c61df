"""Injects faults on purpose, to test what a listener gets.

A scenario (`fixtures/faults/*.json`) names faults, each at one seam of the pipeline: `provider`, `g2p`,
`queue`, `memory`, `disk`, and `transport`, the line between server and client. The module `engine` injects
faults of the first five seams into an engine that shares the models of another one. The module `proxy`
injects the faults of the line between server and client. An ordinary engine, and a server without
`KOKORO_FAULTS`, have no hook for any of this.
"""

from kokoro_lab.lab.faults.injector import Injector, Strike
from kokoro_lab.lab.faults.scenario import Scenario, load_scenario, load_scenarios, read_scenario
