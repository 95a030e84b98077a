"""A program that was exported: its graph, its state, and what its inputs may be."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from typing import Any

from ..fx.graph import Graph
from ..fx.graph_module import GraphModule, _print_readable
from .decomp_utils import CustomDecompTable
from .dynamic_shapes import int_oo
from .graph_signature import ExportGraphSignature

__all__ = [
    "ExportedProgram",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "default_decompositions",
]


@dataclasses.dataclass
class ValueRanges:
    """Between what an open size lies."""

    lower: Any
    upper: Any

    def __str__(self) -> str:
        low = "-int_oo" if self.lower == -int_oo else self.lower
        high = "int_oo" if self.upper == int_oo else self.upper
        return f"VR[{low}, {high}]"

    __repr__ = __str__


@dataclasses.dataclass
class ModuleCallSignature:
    """The arguments and results of a module."""

    inputs: list[Any]
    outputs: list[Any]
    in_spec: Any
    out_spec: Any
    forward_arg_names: list[str] | None = None


@dataclasses.dataclass
class ModuleCallEntry:
    """A module of the program, by its name."""

    fqn: str
    signature: ModuleCallSignature | None = None


class _Symbols(dict[str, ValueRanges]):
    """Ranges by symbol, printed as PyTorch prints them."""

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{k}: {v}' for k, v in self.items())}}}"


class ExportedProgram:
    """A program that `torch.export.export` recorded.

    Parameters
    ----------
    root : Module
        Has what the graph's targets name.
    graph : Graph
        The program: state and arguments are its placeholders.
    graph_signature : ExportGraphSignature
        What those are.
    state_dict, constants : dict
        What they hold.
    range_constraints : dict
        Between what open sizes lie.
    module_call_graph : list of ModuleCallEntry
        The modules; the first is the whole.
    example_inputs : tuple
        The arguments that it was exported with.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    >>> [node.name for node in program.graph.nodes]
    ['input', 'relu', 'output']
    >>> program.module()(torch.tensor([-1.0, 1.0]))
    tensor([0., 1.])
    """

    def __init__(
        self,
        root: Any,
        graph: Graph,
        graph_signature: ExportGraphSignature,
        state_dict: dict[str, Any],
        range_constraints: dict[str, ValueRanges],
        module_call_graph: list[ModuleCallEntry],
        example_inputs: Any = None,
        constants: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self._graph_module = root if isinstance(root, GraphModule) else GraphModule(root, graph)
        self._graph_signature, self._state_dict = graph_signature, state_dict
        self._range_constraints = _Symbols(range_constraints)
        self._module_call_graph, self._example_inputs = module_call_graph, example_inputs
        self._constants = constants or {}
        self._report: Any = None  # of `draft_export`

    @property
    def graph_module(self) -> GraphModule:
        """The program as a module whose arguments are state and arguments."""
        return self._graph_module

    @property
    def graph(self) -> Graph:
        """The program."""
        return self._graph_module.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """The signature of the graph: its inputs and outputs."""
        return self._graph_signature

    @property
    def state_dict(self) -> dict[str, Any]:
        """Parameters and buffers by name."""
        return self._state_dict

    @property
    def constants(self) -> dict[str, Any]:
        """Other tensors by name."""
        return self._constants

    tensor_constants = constants

    def parameters(self) -> Iterator[Any]:
        """Yield the parameters."""
        for _, p in self.named_parameters():
            yield p

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """Yield the parameters with their names."""
        for name in self._graph_signature.parameters:
            yield name, self._state_dict[name]

    def buffers(self) -> Iterator[Any]:
        """Yield the buffers."""
        for _, b in self.named_buffers():
            yield b

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        """Yield the buffers with their names."""
        other = self._graph_signature.non_persistent_buffers
        for name in self._graph_signature.buffers:
            yield name, (self._constants if name in other else self._state_dict)[name]

    @property
    def range_constraints(self) -> dict[str, ValueRanges]:
        """Between what open sizes lie."""
        return self._range_constraints

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """The modules of the program."""
        return self._module_call_graph

    @property
    def example_inputs(self) -> Any:
        """The arguments that it was exported with."""
        return self._example_inputs

    @property
    def call_spec(self) -> Any:
        """The structures of what it takes and returns."""
        signature = self._module_call_graph[0].signature
        assert signature is not None  # noqa: S101
        return dataclasses.make_dataclass("CallSpec", ["in_spec", "out_spec"])(
            signature.in_spec, signature.out_spec
        )

    @property
    def dialect(self) -> str:
        """The set of operators that the graph is made of."""
        return "TRAINING"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` "
            "instead."
        )

    def value_of(self, target: str) -> Any:
        """Return a parameter, a buffer or a constant by its name."""
        return self._state_dict[target] if target in self._state_dict else self._constants[target]

    def module(self, check_guards: bool = True) -> GraphModule:
        """Return the program as a module that takes what the exported one took.

        Parameters
        ----------
        check_guards : bool, default True
            Whether each call checks the sizes of its arguments.

        Returns
        -------
        GraphModule
            With the parameters and buffers of the program, not copies.
        """
        from ._unlift import unlift

        return unlift(self, check_guards)

    def run_decompositions(
        self, decomp_table: dict[Any, Any] | None = None, decompose_custom_triton_ops: bool = False
    ) -> ExportedProgram:
        """Return the program with fewer kinds of operators, and without writes to tensors.

        Parameters
        ----------
        decomp_table : dict, optional
            Functions by the operators that they compute with others; those of
            `default_decompositions` when left out, none when empty.
        decompose_custom_triton_ops : bool, default False
            Not used.

        Returns
        -------
        ExportedProgram
            New values of buffers and arguments are outputs of its graph.
        """
        from ._functional import decompose

        return decompose(self, decomp_table)

    def __str__(self) -> str:
        text = _print_readable(self._graph_module, "GraphModule", False).replace("\n", "\n    ")
        signature = str(self._graph_signature).replace("\n", "\n    ")
        return (
            f"ExportedProgram:\n    {text}\nGraph signature: {signature}\n"
            f"Range constraints: {self._range_constraints}\n"
        )

    def validate(self) -> None:
        """Raise where the graph is not in order."""
        self.graph.lint()

    def __deepcopy__(self, memo: dict[int, Any]) -> ExportedProgram:
        module = copy.deepcopy(self._graph_module, memo)
        for mine, other in zip(module.graph.nodes, self.graph.nodes, strict=True):
            mine.meta = dict(other.meta)
        return self._replaced(module, copy.deepcopy(self._graph_signature))

    def _replaced(self, module: GraphModule, signature: Any, **changes: Any) -> ExportedProgram:
        """Return a program like this with another graph."""
        return ExportedProgram(
            root=module,
            graph=module.graph,
            graph_signature=signature,
            state_dict=changes.get("state_dict", dict(self._state_dict)),
            range_constraints=dict(self._range_constraints),
            module_call_graph=self._module_call_graph,
            example_inputs=self._example_inputs,
            constants=changes.get("constants", dict(self._constants)),
        )


def default_decompositions() -> CustomDecompTable:
    """Return the functions by which `ExportedProgram.run_decompositions` replaces operators.

    Returns
    -------
    CustomDecompTable
        Functions by operators; take some out to keep those operators.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.ops.aten.linear.default in torch.export.default_decompositions()
    True
    """
    return CustomDecompTable()
