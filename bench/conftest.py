"""Choose the library under measurement: ours, PyTorch or NumPy, in the same kind of process."""

import importlib
import json
import os
import sys
from types import ModuleType

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that compare.py gives."""
    parser.addoption("--lib", default="pytensorlib", choices=["pytensorlib", "torch", "numpy"])
    parser.addoption("--site", default="", help="a folder of packages to search last")
    parser.addoption("--labels", help="a JSON list of the rows to measure; all by default")


def pytest_configure(config: pytest.Config) -> None:
    """Let another installation's packages be found after this one's."""
    if config.getoption("--site"):
        sys.path.append(config.getoption("--site"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the rows that were asked for."""
    if config.getoption("--labels") is None:
        return
    wanted = {f"test_case[{label}]" for label in json.loads(config.getoption("--labels"))}
    items[:] = [item for item in items if item.name in wanted]


@pytest.fixture(scope="session")
def lib(request: pytest.FixtureRequest) -> ModuleType:
    """Return the library that makes the tensors, seeded, with as many threads as it may use."""
    name = request.config.getoption("--lib")
    name = "pytensorlib" if name == "numpy" else name
    module = pytest.importorskip(name)
    for part in ("nn", "optim", "utils.data"):
        importlib.import_module(f"{name}.{part}")
    module.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    module.manual_seed(0)
    return module
