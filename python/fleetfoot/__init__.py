"""A laboratory for TCP latency: what makes people wait less here, and what does it cost the others?

Read a scenario (:class:`Scenario`) and compare what could be done for those who wait on it.
"""

from __future__ import annotations

from fleetfoot._native import __version__
from fleetfoot.capture import Imported, import_capture
from fleetfoot.chart import Chart, Charts
from fleetfoot.drilling import Drilled, drill
from fleetfoot.errors import (
    Error,
    InternalError,
    MissingExtraError,
    RunError,
    ScenarioError,
    UsageError,
)
from fleetfoot.explaining import Explanation, explain
from fleetfoot.mechanisms import Mechanism, mechanisms
from fleetfoot.plugin import Controller, Parameter, Queue, register, registered, unregister
from fleetfoot.progress import Progress
from fleetfoot.reproduction import Experiment, Figure, Reproduction, experiments, reproduce
from fleetfoot.result import Result
from fleetfoot.scenario import Scenario
from fleetfoot.study import compare, limit_memory, recommend, run
from fleetfoot.sweep import Sweep, SweepProgress, sweep
from fleetfoot.table import Table

__all__ = [
    "Chart",
    "Charts",
    "Controller",
    "Drilled",
    "Error",
    "Experiment",
    "Explanation",
    "Figure",
    "Imported",
    "InternalError",
    "Mechanism",
    "MissingExtraError",
    "Parameter",
    "Progress",
    "Queue",
    "Reproduction",
    "Result",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Sweep",
    "SweepProgress",
    "Table",
    "UsageError",
    "__version__",
    "compare",
    "drill",
    "experiments",
    "explain",
    "import_capture",
    "limit_memory",
    "mechanisms",
    "recommend",
    "register",
    "registered",
    "reproduce",
    "run",
    "sweep",
    "unregister",
]
