from __future__ import annotations

import pytest

import fleetfoot


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the slow tests too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow: runs with --slow, in `make test-all`"))


@pytest.fixture(scope="session")
def home_line() -> fleetfoot.Scenario:
    """The home line without a warm-up, so that runs may be short."""
    return fleetfoot.Scenario.home_line().with_(run__warmup="0 s", run__drain="10 s")
