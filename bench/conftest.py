"""Choose the library under measurement: ours, or PyTorch in the same kind of process."""

import importlib
import sys
from types import ModuleType

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options that compare.py gives."""
    parser.addoption("--lib", default="pytensorlib", choices=["pytensorlib", "torch"])
    parser.addoption("--site", default="", help="a folder of packages to search last")


def pytest_configure(config: pytest.Config) -> None:
    """Let another installation's packages be found after this one's."""
    if config.getoption("--site"):
        sys.path.append(config.getoption("--site"))


@pytest.fixture(scope="session")
def lib(request: pytest.FixtureRequest) -> ModuleType:
    """Return the library under measurement, seeded and limited to two threads."""
    name = request.config.getoption("--lib")
    pytest.importorskip(name)
    importlib.import_module(f"{name}.nn")
    importlib.import_module(f"{name}.optim")
    module = sys.modules[name]
    module.set_num_threads(2)
    module.manual_seed(0)
    return module
