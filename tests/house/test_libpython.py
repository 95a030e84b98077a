"""What the extension takes of CPython's insides, which each version of it must have."""

import ctypes
import re
import sysconfig
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "rust/py/src"
# Fields of CPython's own objects that are read or written, beside those that PyO3 fills.
FIELDS = set(
    """
    d_base d_getset d_method ob_item tp_alloc tp_dictoffset tp_free tp_getattro tp_name
    tp_weaklistoffset
""".split()
)

pytestmark = pytest.mark.skipif(not SOURCE.is_dir(), reason="there is no source here")


def declared() -> dict[str, str]:
    """Return the functions of the list, each with the condition that it is there under."""
    found = r"(?:#\[cfg\((.*Py_GIL_DISABLED.*)\)\]\s+)?pub fn (\w+)\("
    text = (SOURCE / "libpython.rs").read_text()
    return {name: condition for condition, name in re.findall(found, text)}


def test_functions_of_the_list_are_in_this_interpreter() -> None:
    other = "not(Py_GIL_DISABLED)"
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        other = "Py_GIL_DISABLED"
    here = [name for name, condition in declared().items() if condition != other]
    assert len(here) == 4
    assert not [name for name in here if not hasattr(ctypes.pythonapi, name)]


def test_functions_of_cpython_stand_in_the_list_alone() -> None:
    for path in SOURCE.rglob("*.rs"):
        text = re.sub(r"//.*", "", path.read_text())
        if path.name != "libpython.rs":
            assert not re.search(r'extern "C" \{', text), path
            assert set(re.findall(r"\b_Py\w+", text)) <= set(declared()), path


def test_fields_of_cpython_are_those_of_the_list() -> None:
    text = "\n".join(re.sub(r"//.*", "", p.read_text()) for p in SOURCE.rglob("*.rs"))
    assert set(re.findall(r"\.((?:tp|d|ob|nb|sq|mp)_\w+)", text)) - {"ob_refcnt"} == FIELDS
