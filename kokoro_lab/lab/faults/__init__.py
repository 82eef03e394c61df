"""Faults put in on purpose, to see what becomes of the speech.

A scenario (`fixtures/faults/*.json`) names faults, each at one seam of the pipeline: `provider`, `g2p`,
`queue`, `memory`, `disk`, and `transport`, the line between server and client. `engine` puts those of the
first five into an engine that shares the models of another one, `proxy` those of the line between a server
and a client. Nothing of it is there unless it is asked for: an engine, and a server without `KOKORO_FAULTS`,
hold no hook.
"""

from kokoro_lab.lab.faults.injector import Injector, Strike
from kokoro_lab.lab.faults.scenario import Scenario, load_scenario, load_scenarios, read_scenario
