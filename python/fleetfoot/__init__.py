"""A laboratory for TCP latency: what makes people wait less here, and what does it cost the others?

Read a scenario (:class:`Scenario`) and compare what could be done for those who wait on it.
"""

from __future__ import annotations

from fleetfoot._native import __version__
from fleetfoot.errors import (
    Error,
    InternalError,
    MissingExtraError,
    RunError,
    ScenarioError,
    UsageError,
)
from fleetfoot.mechanisms import Mechanism, mechanisms
from fleetfoot.plugin import Controller, Parameter, Queue, register, registered, unregister
from fleetfoot.scenario import Scenario

__all__ = [
    "Controller",
    "Error",
    "InternalError",
    "Mechanism",
    "MissingExtraError",
    "Parameter",
    "Queue",
    "RunError",
    "Scenario",
    "ScenarioError",
    "UsageError",
    "__version__",
    "mechanisms",
    "register",
    "registered",
    "unregister",
]
