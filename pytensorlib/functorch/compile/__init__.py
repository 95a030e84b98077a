"""The compiler names of `functorch`; recorded calls take their place here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..._absent.modules import fill
from ..._absent.table import EAGER

__all__ = ["make_boxed_compiler", "make_boxed_func", "nop"]

T = TypeVar("T")
fill(
    globals(),
    EAGER,
    "aot_function aot_module aot_module_simplified compiled_function compiled_module "
    "default_partition min_cut_rematerialization_partition draw_graph draw_graph_compile "
    "debug_compile memory_efficient_fusion minifier nnc_jit print_compile ts_compile "
    "pythonkey_decompose get_aot_compilation_context get_aot_graph_name get_graph_being_compiled",
)
default_decompositions: set[Any] = set()


def make_boxed_func(f: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    """Return a function that takes its arguments in a list.

    Parameters
    ----------
    f : callable
        Takes them one by one.

    Returns
    -------
    callable
        Takes one list.

    Examples
    --------
    >>> from pytensorlib.functorch.compile import make_boxed_func
    >>> make_boxed_func(max)([1, 3])
    3
    """

    def boxed(args: list[Any]) -> Any:
        return f(*args)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


def make_boxed_compiler(compiler: T) -> T:
    """Return the compiler: none is called here.

    Parameters
    ----------
    compiler : callable
        Of graphs.

    Returns
    -------
    callable
        The same.

    Examples
    --------
    >>> from pytensorlib.functorch.compile import make_boxed_compiler
    >>> make_boxed_compiler(max) is max
    True
    """
    return compiler


def nop(fx_g: T, _: Any) -> T:
    """Return a graph as it is: a compiler that changes nothing.

    Parameters
    ----------
    fx_g : callable
        The graph.
    _ : list
        Example inputs.

    Returns
    -------
    callable
        `fx_g`.

    Examples
    --------
    >>> from pytensorlib.functorch.compile import nop
    >>> nop(max, []) is max
    True
    """
    return fx_g
