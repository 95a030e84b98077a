"""Programs recorded whole: `export` runs a module once, and what it returns runs without it."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

from .._absent.modules import tell_missing
from .._absent.table import EAGER
from ._draft_export import draft_export
from .decomp_utils import CustomDecompTable
from .dynamic_shapes import AdditionalInputs, Constraint, Dim, ShapesCollection, dims
from .exported_program import (
    ExportedProgram,
    ModuleCallEntry,
    ModuleCallSignature,
    default_decompositions,
)
from .graph_signature import ExportBackwardSignature, ExportGraphSignature
from .unflatten import FlatArgsAdapter, UnflattenedModule, unflatten

__all__ = [
    "AdditionalInputs",
    "Constraint",
    "CustomDecompTable",
    "Dim",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "ExportedProgram",
    "FlatArgsAdapter",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "ShapesCollection",
    "UnflattenedModule",
    "default_decompositions",
    "dims",
    "draft_export",
    "export",
    "load",
    "register_dataclass",
    "save",
    "unflatten",
]


def export(
    mod: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """Return a module's program as a graph of operators.

    The module runs once, on tensors that have sizes and no memory. What depends on the numbers in
    tensors cannot be recorded but by `torch.cond`, `torch.while_loop` and their kin.

    Parameters
    ----------
    mod : Module
        What is exported.
    args, kwargs : tuple, dict
        Examples of its arguments.
    dynamic_shapes : dict, tuple or list, optional
        For each argument, which of its sizes are open: a dictionary from dimensions to `Dim`, or a
        list with one for each dimension; all sizes are fixed when left out.
    strict : bool, default False
        Not needed: the program is run in either case.
    preserve_module_call_signature : tuple of str, default ()
        Not used.
    prefer_deferred_runtime_asserts_over_guards : bool, default False
        Not used.

    Returns
    -------
    ExportedProgram
        The program, with the module's parameters and buffers.

    Raises
    ------
    UserError
        A size that is to be open has to be a constant, or arguments and shapes do not fit.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> batch = torch.export.Dim("batch")
    >>> program = torch.export.export(
    ...     torch.nn.Linear(2, 3), (torch.ones(4, 2),), dynamic_shapes=({0: batch},)
    ... )
    >>> program.module()(torch.ones(7, 2)).shape
    torch.Size([7, 3])
    """
    from ._trace import check, trace

    check(mod, args)
    return trace(mod, args, kwargs or {}, dynamic_shapes)


def save(
    ep: ExportedProgram,
    f: Any,
    *,
    extra_files: dict[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
    pickle_protocol: int = 2,
) -> None:
    """Write a program to a file.

    Parameters
    ----------
    ep : ExportedProgram
        The program.
    f : path or file
        Where it is written, usually ``.pt2``.
    extra_files : dict, optional
        Texts by name that are kept beside.
    opset_version : dict, optional
        Not used.
    pickle_protocol : int, default 2
        Not used.

    Examples
    --------
    >>> import io
    >>> import pytensorlib as torch
    >>> file = io.BytesIO()
    >>> torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), file)
    >>> _ = file.seek(0)
    >>> torch.export.load(file).module()(torch.tensor([-1.0, 1.0]))
    tensor([0., 1.])
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            "The 'ep' parameter must be an instance of 'ExportedProgram', got "
            f"'{type(ep).__name__}' instead."
        )
    from ._files import write

    pt.save(write(ep, extra_files), f)


def load(
    f: Any,
    *,
    extra_files: dict[str, Any] | None = None,
    expected_opset_version: dict[str, int] | None = None,
) -> ExportedProgram:
    """Read a program that `save` wrote.

    Parameters
    ----------
    f : path or file
        The file.
    extra_files : dict, optional
        Gets the texts that were kept beside.
    expected_opset_version : dict, optional
        Not used.

    Returns
    -------
    ExportedProgram
        The program.

    Raises
    ------
    RuntimeError
        The file is none of `save`'s; programs that PyTorch saved cannot be read.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.export.load("missing.pt2")
    Traceback (most recent call last):
        ...
    FileNotFoundError: [Errno 2] No such file or directory: 'missing.pt2'
    """
    from ._files import read

    return read(pt.load(f), extra_files)


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Let arguments and results of exported programs be of a dataclass.

    Parameters
    ----------
    cls : type
        The dataclass.
    serialized_type_name : str, optional
        What files call it.

    Examples
    --------
    >>> import dataclasses
    >>> import pytensorlib as torch
    >>> @dataclasses.dataclass
    ... class Pair:
    ...     a: torch.Tensor
    ...     b: torch.Tensor
    >>> torch.export.register_dataclass(Pair)
    """
    import dataclasses

    from ..utils._pytree import register_pytree_node

    if not dataclasses.is_dataclass(cls):
        raise AssertionError(f"Only dataclasses can be registered with this function: {cls}")
    names = [f.name for f in dataclasses.fields(cls) if f.init]
    register_pytree_node(
        cls,
        lambda x: ([getattr(x, n) for n in names], names),
        lambda values, keys: cls(**dict(zip(keys, values, strict=True))),
        serialized_type_name=serialized_type_name or f"{cls.__module__}.{cls.__qualname__}",
    )


tell_missing(globals(), EAGER)
