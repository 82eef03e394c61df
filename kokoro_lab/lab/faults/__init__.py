"""Injects faults on purpose, to test what a listener gets.

A scenario (`fixtures/faults/*.json`) names faults, each at one seam of the pipeline: `provider`, `g2p`,
`queue`, `memory`, `disk`, and `transport`, the line between server and client. `engine` injects the first
five kinds into an engine that shares the models of another one, `proxy` the faults of the line between server
and client. An ordinary engine, and a server without `KOKORO_FAULTS`, have no hook for any of this.
"""

from kokoro_lab.lab.faults.injector import Injector, Strike
from kokoro_lab.lab.faults.scenario import Scenario, load_scenario, load_scenarios, read_scenario
