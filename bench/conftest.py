"""Choose the library under measurement: ours, PyTorch or NumPy, in the same kind of process."""

import sys
from types import ModuleType

import pytest
from turns import loaded


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that compare.py gives."""
    parser.addoption("--lib", default="pytensorlib", choices=["pytensorlib", "torch", "numpy"])
    parser.addoption("--site", default="", help="a folder of packages to search last")


def pytest_configure(config: pytest.Config) -> None:
    """Let another installation's packages be found after this one's."""
    if config.getoption("--site"):
        sys.path.append(config.getoption("--site"))


@pytest.fixture(scope="session")
def lib(request: pytest.FixtureRequest) -> ModuleType:
    """Return the library that makes the tensors, seeded, with as many threads as it may use."""
    name = request.config.getoption("--lib")
    name = "pytensorlib" if name == "numpy" else name
    pytest.importorskip(name)
    return loaded(name)
