"""Splits a program between an accelerator and what it does not support."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytensorlib as pt

from ..graph_module import GraphModule
from ..node import Node, map_arg
from .graph_manipulation import get_size_of_node
from .operator_support import OperatorSupportBase
from .shape_prop import ShapeProp
from .split_utils import move_non_tensor_nodes_on_boundary, split_by_tags
from .tools_common import (
    CALLABLE_NODE_OPS,
    FxNetAccFusionsFinder,
    get_node_target,
    is_node_output_tensor,
)

__all__ = [
    "FxNetAccNodesFinder",
    "FxNetSplitterInternalError",
    "SplitResult",
    "Subgraph",
    "generate_inputs_for_submodules",
]


class _SplitterSettingBase:
    """How a program is split.

    Parameters
    ----------
    min_acc_module_size : int, default 1
        Smaller parts go to where their neighbours are.
    skip_fusion : bool, default False
        Whether nodes that pass numbers to each other may be in several parts.
    allow_non_tensor : bool, default False
        Whether numbers may go in and out of the accelerator.
    max_acc_splits : int, default -1
        The most parts that `generate_split_results` allows; any number when not positive.
    move_non_tensor_nodes_on_boundary : bool, default False
        Whether nodes that give numbers move to the part that uses them.
    """

    def __init__(
        self,
        min_acc_module_size: int = 1,
        skip_fusion: bool = False,
        allow_non_tensor: bool = False,
        max_acc_splits: int = -1,
        move_non_tensor_nodes_on_boundary: bool = False,
    ) -> None:
        self.min_acc_module_size, self.skip_fusion = min_acc_module_size, skip_fusion
        self.allow_non_tensor, self.max_acc_splits = allow_non_tensor, max_acc_splits
        self.move_non_tensor_nodes_on_boundary = move_non_tensor_nodes_on_boundary


class FxNetAccNodesFinder:
    """Finds the nodes that an accelerator computes: supported, and with tensors in and out.

    Parameters
    ----------
    module : GraphModule
        The program; `ShapeProp` must have run.
    operator_support : OperatorSupportBase
        Says of each node whether it is supported.
    allow_non_tensor : bool
        Whether numbers may go in and out.
    """

    def __init__(
        self, module: GraphModule, operator_support: OperatorSupportBase, allow_non_tensor: bool
    ) -> None:
        self.module, self.operator_support = module, operator_support
        self.allow_non_tensor = allow_non_tensor
        self.acc_nodes: set[Node] = set()

    def _drop_users(self, waiting: list[Node]) -> None:
        """Take out the nodes that get numbers from others."""
        while waiting:
            for user in waiting.pop().users:
                if user in self.acc_nodes:
                    self.acc_nodes.remove(user)
                    if not is_node_output_tensor(user):
                        waiting.append(user)

    def __call__(self) -> set[Node]:
        """Return the nodes."""
        modules = dict(self.module.named_modules())
        calls = [n for n in self.module.graph.nodes if n.op in CALLABLE_NODE_OPS]
        supports = self.operator_support.is_node_supported
        self.acc_nodes = {n for n in calls if supports(modules, n)}
        if self.allow_non_tensor:
            return self.acc_nodes
        numbers = [n for n in calls if not is_node_output_tensor(n)]
        self._drop_users([n for n in numbers if n not in self.acc_nodes])
        while True:
            mine = [n for n in numbers if n in self.acc_nodes]
            leaving = [n for n in mine if any(u not in self.acc_nodes for u in n.users)]
            if not leaving:
                return self.acc_nodes
            self.acc_nodes -= set(leaving)
            self._drop_users(leaving)


class FxNetSplitterInternalError(Exception):
    """A program cannot be split."""


@dataclass
class Subgraph:
    """Nodes that run together, and whether the accelerator runs them."""

    is_acc: bool
    nodes: list[Node]
    device_ordinal: int | None = None


class SplitResult(NamedTuple):
    """A split program, its parts' arguments by name, and how names of other parts begin."""

    split_module: GraphModule
    submodule_inputs: dict[str, Any]
    non_acc_submodule_prefix: str


def generate_inputs_for_submodules(
    model: Any, inputs: Sequence[Any], target_submodules: Iterable[str], deepcopy: bool = False
) -> dict[str, Any]:
    """Return with which arguments a model calls its submodules.

    Parameters
    ----------
    model : Module
        Runs once, without gradients.
    inputs : tuple
        Its arguments.
    target_submodules : sequence of str
        Which submodules.
    deepcopy : bool, default False
        Whether the arguments are copied.

    Returns
    -------
    dict
        Tuples by names.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.splitter_base import generate_inputs_for_submodules
    >>> model = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())
    >>> generate_inputs_for_submodules(model, (torch.tensor([-1.0, 1.0]),), ["1"])
    {'1': (tensor([0., 1.]),)}
    """
    found: dict[str, Any] = {}
    wanted = set(target_submodules)

    def keep(name: str) -> Any:
        def hook(module: Any, args: Any) -> None:
            found[name] = copy.deepcopy(args) if deepcopy else args

        return hook

    modules = [(k, m) for k, m in model.named_modules() if k in wanted]
    handles = [m.register_forward_pre_hook(keep(k)) for k, m in modules]
    try:
        with pt.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return found


class _SplitterBase:
    """Splits a program into as few parts as can be, in turns on the accelerator and elsewhere.

    Parameters
    ----------
    module : GraphModule
        Its nodes get tags; call the splitter once.
    sample_input : tuple
        With which it is run, so that types are known.
    operator_support : OperatorSupportBase
        Says of each node whether the accelerator supports it.
    settings : _SplitterSettingBase
        How it is split.
    non_acc_submodule_name : str
        What the names of other parts begin with.
    return_tuple : bool, default False
        Whether a part with one result gives a tuple.
    nodes_finder : callable, optional
        Returns the nodes of the accelerator.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.operator_support import OperatorSupport
    >>> from pytensorlib.fx.passes import splitter_base
    >>> gm = torch.fx.symbolic_trace(lambda x: torch.relu(torch.sin(x)).sum())
    >>> support = OperatorSupport({"torch.sin": None, "torch.relu": None})
    >>> settings = splitter_base._SplitterSettingBase()
    >>> split = splitter_base._SplitterBase(gm, (torch.ones(2),), support, settings)()
    Got 1 acc subgraphs and 1 non-acc subgraphs
    >>> [node.name for node in split.graph.nodes]
    ['x', '_run_on_acc_0', '_run_on_cpu_1', 'output']
    """

    # Bytes in a second between the accelerator and the rest.
    PCIe_BW = 100 * 2**30

    def __init__(
        self,
        module: GraphModule,
        sample_input: Sequence[Any],
        operator_support: OperatorSupportBase,
        settings: _SplitterSettingBase,
        non_acc_submodule_name: str = "_run_on_cpu_",
        return_tuple: bool = False,
        nodes_finder: Any = None,
    ) -> None:
        if not isinstance(module, GraphModule):
            raise AssertionError(f"Expected GraphModule, got {type(module)}")
        self.module, self.sample_input = module, sample_input
        ShapeProp(module).propagate(*sample_input)
        self.operator_support, self.settings = operator_support, settings
        if nodes_finder is None:
            nodes_finder = FxNetAccNodesFinder(module, operator_support, settings.allow_non_tensor)
        self.acc_nodes = nodes_finder()
        finder = FxNetAccFusionsFinder(module, self.acc_nodes)
        self.fusions = {} if settings.skip_fusion else finder()
        self.non_acc_submodule_name, self._return_tuple = non_acc_submodule_name, return_tuple
        self._node_submodule_map: dict[str, str] = {}
        self.tags: list[str] = []
        self.deps = self.find_deps()

    def get_node_submodule_map(self) -> dict[str, str]:
        """Return in which part each node is, by its name."""
        return self._node_submodule_map

    def find_deps(self) -> dict[Node, set[Node]]:
        """Return what each node has to wait for; those of a group wait together."""
        deps: dict[Node, set[Node]] = defaultdict(set)
        for n in self.module.graph.nodes:
            if n.op in CALLABLE_NODE_OPS:
                for user in n.users:
                    if user.op != "output":
                        deps[user].add(n)
        for n, group in self.fusions.items():
            for m in group:
                deps[n] |= deps[m] - group
                for user in m.users:
                    if user not in group:
                        deps[user].add(n)
        return deps

    # Parts.

    def starter_nodes(self) -> tuple[dict[Node, None], dict[Node, None]]:
        """Return the nodes that can run first, elsewhere and on the accelerator."""
        elsewhere: dict[Node, None] = {}
        mine: dict[Node, None] = {}
        for n in self.module.graph.nodes:
            first: list[Node] = []
            if n.op == "call_function" and not n.all_input_nodes:
                first = [n]
            elif n.op in ("placeholder", "get_attr"):
                first = list(n.users)
            for m in first:
                (mine if m in self.acc_nodes else elsewhere)[m] = None
        return elsewhere, mine

    def put_nodes_into_subgraphs(self) -> list[Subgraph]:
        """Return the parts in the order in which they run."""
        elsewhere, mine = self.starter_nodes()
        for waiting in (elsewhere, mine):
            for n in [n for n in waiting if n.op == "output"]:
                del waiting[n]
        done: set[Node] = set()
        is_acc = not any(not self.deps[n] for n in elsewhere)
        parts: list[Subgraph] = []
        nodes: list[Node] = []
        while elsewhere or mine:
            waiting = mine if is_acc else elsewhere
            ready = next((n for n in waiting if self.deps[n] <= done), None)
            if ready is None:
                if not nodes:
                    raise FxNetSplitterInternalError("Subgraph can't be empty")
                parts.append(Subgraph(is_acc, nodes))
                is_acc, nodes = not is_acc, []
                continue
            del waiting[ready]
            done.add(ready)
            nodes.append(ready)
            group = [m for m in self.module.graph.nodes if m in self.fusions.get(ready, ())]
            for m in [*group, *ready.users]:
                if m.op in CALLABLE_NODE_OPS and m not in done:
                    (mine if m in self.acc_nodes else elsewhere)[m] = None
        if nodes:
            parts.append(Subgraph(is_acc, nodes))
        if not parts:
            raise FxNetSplitterInternalError("Couldn't create subgraphs")
        return parts

    def remove_small_acc_subgraphs(self, subgraphs: list[Subgraph]) -> list[Subgraph]:
        """Return the parts without those of the accelerator that are too small.

        Parameters
        ----------
        subgraphs : list of Subgraph
            All parts; their neighbours take the nodes.
        """
        found: list[Subgraph] = []
        least = self.settings.min_acc_module_size
        for part in subgraphs:
            if part.is_acc and len(part.nodes) >= least:
                found.append(part)
                continue
            if part.is_acc:
                print(
                    "Eliminating acc subgraph because it's smaller than the threshold: "
                    f"{len(part.nodes)} < {least}"
                )
                part.is_acc = False
                if found:
                    found[-1].nodes.extend(part.nodes)
                    continue
            if found and not found[-1].is_acc:
                found[-1].nodes.extend(part.nodes)
            else:
                found.append(part)
        return found

    def tag(self, subgraphs: list[Subgraph]) -> None:
        """Give the nodes of each part its name as their tag.

        Parameters
        ----------
        subgraphs : list of Subgraph
            The parts, in order.
        """
        self.tags = []
        n: Any
        for i, part in enumerate(subgraphs):
            tag = f"{'_run_on_acc_' if part.is_acc else self.non_acc_submodule_name}{i}"
            self.tags.append(tag)
            for n in part.nodes:
                if hasattr(n, "tag"):
                    raise FxNetSplitterInternalError(f"Node {n} was already tagged")
                n.tag = tag
                self._node_submodule_map[n.name] = tag

    def split(self, remove_tag: bool = False) -> GraphModule:
        """Return the program of parts that tags tell.

        Parameters
        ----------
        remove_tag : bool, default False
            Whether the nodes lose their tags.
        """
        made: GraphModule = split_by_tags(self.module, self.tags, return_tuple=self._return_tuple)
        if remove_tag:
            for n in self.module.graph.nodes:
                if hasattr(n, "tag"):
                    del n.tag
        return made

    def __call__(self) -> GraphModule:
        """Return the program of parts."""
        parts = self.put_nodes_into_subgraphs()
        if self.settings.move_non_tensor_nodes_on_boundary:
            move_non_tensor_nodes_on_boundary(parts)
        parts = self.remove_small_acc_subgraphs(parts)
        mine = sum(part.is_acc for part in parts)
        print(f"Got {mine} acc subgraphs and {len(parts) - mine} non-acc subgraphs")
        self.tag(parts)
        return self.split()

    def generate_split_results(self) -> SplitResult:
        """Return the program of parts, and the arguments of each.

        Raises
        ------
        ValueError
            There are more parts than the settings allow.
        """
        made = self()
        names = [name for name, _ in made.named_children()]
        if 0 < self.settings.max_acc_splits < len(names):
            raise ValueError(
                f"Cannot fulfill max_acc_splits limit: {len(names)} parts, and at most "
                f"{self.settings.max_acc_splits} are allowed"
            )
        inputs = generate_inputs_for_submodules(made, self.sample_input, names)
        return SplitResult(made, inputs, self.non_acc_submodule_name)

    # Reports.

    def _lower_model_to_backend(self, mod: GraphModule, inputs: Any) -> Any:
        """Return a part as the accelerator runs it; for subclasses."""
        return mod

    def _find_culprit(self, mod: GraphModule, inputs: Any) -> str:
        """Return what in a part fails; for subclasses."""
        return "Unable to find a culprit because _find_culprit() function is not implemented."

    def node_support_preview(self, dump_graph: bool = False) -> str:
        """Print and return which functions and types are supported.

        Parameters
        ----------
        dump_graph : bool, default False
            Not used.
        """
        modules = dict(self.module.named_modules())
        rows: dict[bool, dict[str, dict[Any, None]]] = {True: {}, False: {}}
        for n in self.module.graph.nodes:
            if n.op not in CALLABLE_NODE_OPS:
                continue
            types = [_dtype(a) for a in n.args]
            while types and types[-1] is None:
                types.pop()
            named = tuple((k, _dtype(a)) for k, a in n.kwargs.items() if isinstance(a, Node))
            is_mine = self.operator_support.is_node_supported(modules, n)
            row = rows[is_mine].setdefault(get_node_target(modules, n), {})
            row[tuple(types), named] = None
        text = ""
        for is_mine, head in ((True, "Supported"), (False, "Unsupported")):
            text += f"\n{head} node types in the model:\n"
            for target, found in rows[is_mine].items():
                for types_, named in found:
                    text += f"{target}: ({types_}, {dict(named)})\n"
        print(text)
        return text

    def split_preview(self, dump_graph: bool = False) -> str:
        """Print and return which parts there would be, and what they would exchange.

        Parameters
        ----------
        dump_graph : bool, default False
            Not used.
        """
        parts = self.put_nodes_into_subgraphs()
        text = _counted("Before", parts)
        parts = self.remove_small_acc_subgraphs(parts)
        text += _counted("After", parts)
        self.tag(parts)
        for tag, part in zip(self.tags, parts, strict=True):
            text += f"{tag}: {len(part.nodes)} node(s)\n"
        made = self.split(remove_tag=True)
        made.eval()
        slowest, where = float(self.PCIe_BW), ""
        names = [str(n.target) for n in made.graph.nodes if n.op == "call_module"]
        inputs = generate_inputs_for_submodules(made, self.sample_input, names)
        for name in [name for name in names if "acc" in name]:
            said, rate = self._preview(getattr(made, name), inputs[name])
            text += f"\nProcessing acc submodule {name}\n{said}"
            if rate < slowest:
                slowest, where = rate, name
        text += (
            f"\nTheoretical max qps (bounds by PCIe bandwidth) for this model is {slowest},"
            f" bottleneck is submodule {where}."
        )
        print(text)
        return text

    def _preview(self, part: Any, inputs: Any) -> tuple[str, float]:
        """Return the report of a part, and how often in a second its data can be moved."""
        ShapeProp(part).propagate(*inputs)
        returned: list[Node] = []
        map_arg(part.graph.output_node().args, returned.append)
        given = [n for n in part.graph.nodes if n.op == "placeholder"]
        text, totals = "", []
        for what, nodes in (("Input", given), ("Output", returned)):
            text += f"Checking {what.lower()}s...\n"
            tensors = [n for n in nodes if is_node_output_tensor(n)]
            totals.append(sum(get_size_of_node(part, n)[0] for n in tensors))
            for n in nodes:
                if n not in tensors:
                    text += (
                        f"{what} {n.name} is not a tensor, this might cause problems during "
                        "lowering!\n"
                    )
        rate = self.PCIe_BW / max(*totals, 1)
        text += (
            f"Total input size in bytes is {totals[0]}, total output size in bytes is "
            f"{totals[1]}, theoretical max qps (bounds by PCIe bandwidth) for this submodule is "
            f"{rate}.\n"
        )
        doing = "lowering"
        try:
            lowered = self._lower_model_to_backend(part, inputs)
            doing = "inference"
            lowered(*inputs)
        except RuntimeError:
            culprit = self._find_culprit(part, inputs)
            return f"{text}Run into an error during {doing}!\n{culprit}", rate
        return f"{text}Lowering and running succeed!\n", rate


def _dtype(arg: Any) -> Any:
    return getattr(arg.meta.get("tensor_meta"), "dtype", None) if isinstance(arg, Node) else None


def _counted(when: str, parts: list[Subgraph]) -> str:
    mine = sum(part.is_acc for part in parts)
    return (
        f"{when} removing small acc subgraphs, total {len(parts)} subgraphs are created: {mine} "
        f"acc subgraphs and {len(parts) - mine} cpu subgraphs.\n"
    )
