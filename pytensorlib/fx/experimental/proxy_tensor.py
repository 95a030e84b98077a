"""What PyTorch's tracer of tensors is asked for; nothing is traced here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ..._named import fill, tell_missing
from ..._named_modules import EAGER
from ..._symbolic import SymBool, SymFloat, SymInt

__all__: list[str] = []

fill(
    globals(),
    EAGER,
    "make_fx dispatch_trace get_isolated_graphmodule PythonKeyTracer ProxyTorchDispatchMode "
    "DecompositionInterpreter selective_decompose wrapper_and_args_for_make_fx decompose "
    "pythonkey_decompose track_tensor_tree track_tensor thunkify fetch_object_proxy "
    "fetch_sym_proxy get_proxy_slot set_proxy_slot _ProxyTensor _SymNodeDict _ModuleStackTracer",
)
py_sym_types = (SymInt, SymFloat, SymBool)


def is_sym_node(node: Any) -> bool:
    """Return False: nothing is a node of a graph."""
    return False


def has_proxy_slot(obj: Any, tracer: Any) -> bool:
    """Return False: no tensor is followed by a tracer."""
    return False


def get_proxy_mode() -> None:
    """Return None: no tracer is at work.

    Examples
    --------
    >>> from pytensorlib.fx.experimental.proxy_tensor import get_proxy_mode
    >>> get_proxy_mode() is None
    True
    """


get_innermost_proxy_mode = get_proxy_mode


@contextlib.contextmanager
def disable_proxy_modes_tracing(enable_current: bool = False) -> Iterator[None]:
    """Do without a tracer for a block."""
    yield


maybe_disable_thunkify = maybe_enable_thunkify = disable_proxy_modes_tracing
tell_missing(globals(), EAGER)
