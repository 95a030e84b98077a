"""Finds the nodes of a program whose results differ between two ways to run it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..graph_module import GraphModule
from ..node import Node, map_arg
from .shape_prop import ShapeProp
from .split_utils import split_by_tags
from .tools_common import CALLABLE_NODE_OPS, FxNetAccFusionsFinder

__all__ = [
    "FxNetMinimizerBadModuleError",
    "FxNetMinimizerResultMismatchError",
    "FxNetMinimizerRunFuncError",
]


class FxNetMinimizerBadModuleError(Exception):
    """Some nodes cannot be a module."""


class FxNetMinimizerRunFuncError(Exception):
    """One of the two ways to run nodes raised."""


class FxNetMinimizerResultMismatchError(Exception):
    """The two ways to run nodes gave different results."""


_FAILURES = (FxNetMinimizerRunFuncError, FxNetMinimizerResultMismatchError)


@dataclass
class _MinimizerSettingBase:
    """How nodes are searched.

    Parameters
    ----------
    accumulate_error : bool, default False
        Whether each way gets what it computed before, and not both what the first did.
    traverse_method : str, default "sequential"
        "sequential" runs each node; "binary" halves what differs; "accumulate" adds node by node;
        "skip" runs what lies between some nodes; "defined" runs all at once; "block" finds the
        first and last node.
    find_all : bool, default False
        Whether the search goes on after the first.
    return_intermediate : bool, default False
        Whether `run_nodes` compares all nodes.
    all_outputs : bool, default False
        Whether all results of a part are compared.
    """

    accumulate_error: bool = False
    traverse_method: str = "sequential"
    find_all: bool = False
    return_intermediate: bool = False
    all_outputs: bool = False

    def __str__(self) -> str:
        return "FX Minimizer Settings:\n" + "".join(f"\t{k}: {v}\n" for k, v in vars(self).items())


class _MinimizerBase:
    """Runs parts of a program in two ways, which a subclass says, and compares them.

    Parameters
    ----------
    module : GraphModule
        The program.
    sample_input : tuple
        Its arguments.
    compare_fn : callable
        Takes the two results and names of nodes; returns a number and whether they agree.
    settings : _MinimizerSettingBase
        How nodes are searched.
    module_exporter : callable, optional
        Gets arguments, a part and a name where they do not agree.
    exclusion_fn : callable, optional
        Takes nodes out of the list that is to run, given its bounds.

    Examples
    --------
    >>> import contextlib
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes import net_min_base
    >>> class Minimizer(net_min_base._MinimizerBase):
    ...     def run_a(self, mod, inputs, report_idx=-1):
    ...         return mod(*inputs)
    ...     def run_b(self, mod, inputs, report_idx=-1):
    ...         broken = any(node.name == "exp" for node in mod.graph.nodes)
    ...         return mod(*inputs) + broken
    >>> gm = torch.fx.symbolic_trace(lambda x: x.sin().exp().cos())
    >>> equal = lambda a, b, names: (float((a - b).abs().max()), torch.equal(a, b))
    >>> settings = net_min_base._MinimizerSettingBase()
    >>> minimizer = Minimizer(gm, (torch.ones(2),), equal, settings)
    >>> with contextlib.redirect_stdout(None):
    ...     found = minimizer.minimize()
    >>> found
    {exp}
    """

    def __init__(
        self,
        module: GraphModule,
        sample_input: Sequence[Any],
        compare_fn: Callable[[Any, Any, list[str]], tuple[float, bool]],
        settings: _MinimizerSettingBase,
        module_exporter: Callable[[Any, GraphModule, str], None] | None = None,
        exclusion_fn: Callable[[list[Node], int, int], None] | None = None,
    ) -> None:
        if not isinstance(module, GraphModule):
            raise AssertionError(f"Expected GraphModule, got {type(module)}")
        self.module, self.sample_input, self.settings = module, sample_input, settings
        self.compare_fn, self.module_exporter = compare_fn, module_exporter
        self.exclusion_fn = exclusion_fn
        self.a_outputs: dict[str, Any] = {}
        self.b_outputs: dict[str, Any] = {}
        self.results: dict[Any, Any] = {}
        self.reports: list[list[str]] = []
        self.iteration = 0
        self.run_shape_prop()
        calls = {n for n in module.graph.nodes if n.op in CALLABLE_NODE_OPS}
        self.fusions = FxNetAccFusionsFinder(module, calls)()
        names = [n.name for n in module.graph.nodes if n.op == "placeholder"]
        if len(names) != len(sample_input):
            raise AssertionError(
                f"Placeholder count ({len(names)}) does not match "
                f"sample_input count ({len(sample_input)})"
            )
        self.a_outputs.update(zip(names, sample_input, strict=True))
        self.b_outputs.update(self.a_outputs)

    def run_shape_prop(self) -> None:
        """Note shapes and types on the nodes."""
        ShapeProp(self.module).propagate(*self.sample_input)

    def run_a(self, mod: GraphModule, inputs: Any, report_idx: int = -1) -> Any:
        """Return what a part gives in the first way.

        Parameters
        ----------
        mod : GraphModule
            The part.
        inputs : list
            Its arguments.
        report_idx : int
            Which report gets what there is to say.
        """
        raise RuntimeError("run_a() is not implemented.")

    def run_b(self, mod: GraphModule, inputs: Any, report_idx: int = -1) -> Any:
        """Return what a part gives in the second way.

        Parameters
        ----------
        mod : GraphModule
            The part.
        inputs : list
            Its arguments.
        report_idx : int
            Which report gets what there is to say.
        """
        raise RuntimeError("run_b() is not implemented.")

    def _part(self, nodes: set[Node]) -> tuple[GraphModule, GraphModule]:
        """Return the program with some nodes as a part, and that part."""
        n: Any
        for n in self.module.graph.nodes:
            if n.op not in CALLABLE_NODE_OPS:
                continue
            before = {m.tag for m in n.all_input_nodes if m.op in CALLABLE_NODE_OPS}
            after = bool(before & {"minimize", "main_1"})
            n.tag = "minimize" if n in nodes else "main_1" if after else "main_0"
        whole = split_by_tags(self.module, ["main_0", "minimize", "main_1"])
        part = getattr(whole, "minimize", None)
        if part is None:
            raise FxNetMinimizerBadModuleError(
                f"Minimize submodule was not found with nodes {nodes}"
            )
        return whole, part

    def _inputs(self, whole: GraphModule, part: GraphModule) -> tuple[Any, Any]:
        """Return the arguments of a part in both ways."""
        names = [n.name for n in part.graph.nodes if n.op == "placeholder"]
        if set(names) <= self.a_outputs.keys():
            a = [self.a_outputs[name] for name in names]
            b = [self.b_outputs[name] for name in names]
        else:
            if self.settings.accumulate_error:
                print(f"Can't find previous stored outputs named {names}!")
            from .splitter_base import generate_inputs_for_submodules

            a = b = generate_inputs_for_submodules(whole, self.sample_input, ["minimize"])[
                "minimize"
            ]
        return (a, b) if self.settings.accumulate_error else (a, a)

    def _compare(self, nodes: set[Node], names: list[str], report: list[str]) -> None:
        """Run nodes in both ways; raise where that fails or the results differ."""
        whole, part = self._part(nodes)
        inputs = self._inputs(whole, part)
        report.append("Run and compare ...")
        if names and not self.settings.all_outputs:
            part.graph.erase_node(part.graph.output_node())
            wanted = [n for n in part.graph.nodes if n.name in names]
            part.graph.output(wanted[0] if len(wanted) == 1 else tuple(wanted))
            part.recompile()
        returned = part.graph.output_node().args
        key = map_arg(returned, lambda n: n.name)
        try:
            a = self.run_a(part, inputs[0], len(self.reports) - 1)
            b = self.run_b(part, inputs[1], len(self.reports) - 1)
        except Exception as e:
            report.append(f"Exception raised when running minimize: {e}")
            raise FxNetMinimizerRunFuncError(f"Exception raised when running minimize: {e}") from e
        single = isinstance(returned[0], Node)
        given: Any = returned if single else returned[0]
        for n, x, y in zip(given, [a] if single else a, [b] if single else b, strict=True):
            self.a_outputs[n.name], self.b_outputs[n.name] = x, y
        number, agree = self.compare_fn(a, b, names)
        self.results[key] = number
        report.append(f"Numerical accuracy = {number}")
        if agree:
            return
        report.append(f"Result mismatch for {key}")
        if self.module_exporter is not None:
            last: Any = key
            while isinstance(last, tuple):
                last = last[0]
            self.module_exporter(inputs[0], part, f"{last}_cpu")
            self.module_exporter(inputs[1], part, f"{last}_acc")
        raise FxNetMinimizerResultMismatchError(f"Result mismatch for {key}")

    def _fails(self, nodes: list[Node], names: list[str], said: str) -> Exception | None:
        """Run nodes; return how that failed, or None, and report it."""
        self.iteration += 1
        report = [f"Iteration {self.iteration}: {said}"]
        self.reports.append(report)
        inside = set(nodes)
        for n in nodes:
            inside |= self.fusions.get(n, set())
        try:
            self._compare(inside, names, report)
        except _FAILURES as e:
            self.print_report(report)
            return e
        report.append("No discrepancy found.")
        self.print_report(report)
        return None

    def _without_excluded(self, nodes: list[Node], start: int = -1, end: int = -1) -> list[Node]:
        nodes = list(nodes)
        if self.exclusion_fn is not None:
            self.exclusion_fn(nodes, start, end)
        return nodes

    # Ways to search.

    def _sequential(self, nodes: list[Node]) -> set[Node]:
        found: set[Node] = set()
        for n in nodes:
            if not self._without_excluded([n]):
                if not self.settings.find_all:
                    return found
                continue
            error = self._fails([n], [n.name], f"node {n.name}")
            if error is None:
                continue
            raised = isinstance(error, FxNetMinimizerRunFuncError)
            found |= self.fusions.get(n, {n}) if raised else {n}
            if not self.settings.find_all:
                return found
        return found

    def _binary(self, nodes: list[Node], start: int = 0, end: int | None = None) -> set[Node]:
        end = len(nodes) if end is None else end
        inside = self._without_excluded(nodes[start:end], start, end)
        if not inside:
            return set()
        said = f"nodes {start}:{inside[0].name} to {end - 1}:{inside[-1].name}"
        if self._fails(inside, [inside[-1].name], said) is None:
            return set()
        if len(inside) == 1:
            return set(inside)
        middle = start + (end - start) // 2
        found = self._binary(nodes, start, middle)
        if found and not self.settings.find_all:
            return found
        return found | self._binary(nodes, middle, end)

    def _accumulate(self, nodes: list[Node]) -> set[Node]:
        if self.settings.find_all:
            print("'Find All' mode is not supported in accumulate traversal.")
            return set()
        for i, n in enumerate(nodes):
            if self._fails(nodes[: i + 1], [n.name], f"with node {n.name}") is not None:
                return {n}
        return set()

    def _skip(self, nodes: list[Node], skipped: list[str]) -> set[Node]:
        found: set[Node] = set()
        runs: list[list[Node]] = [[]]
        for n in nodes:
            if n.name in skipped:
                runs.append([])
            else:
                runs[-1].append(n)
        for run in filter(None, runs):
            inside = self._without_excluded(run)
            if inside and self._fails(inside, [], f"{inside[0].name} to {inside[-1].name}"):
                found |= set(inside)
        return found

    def _defined(self, nodes: list[Node]) -> set[Node]:
        inside = self._without_excluded(nodes)
        if not inside:
            return set()
        said = f"{inside[0].name} to {inside[-1].name}"
        return set() if self._fails(inside, [inside[-1].name], said) is None else set(inside)

    def _block(self, nodes: list[Node], find_last_node: bool | None) -> set[Node]:
        """Return the nodes from the last that makes an end wrong to the first that makes one so."""

        def fails(inside: list[Node]) -> bool:
            inside = self._without_excluded(inside)
            names = [inside[-1].name]
            said = f"{inside[0].name} to {inside[-1].name}"
            return self._fails(inside, names, said) is not None

        first, last = 0, len(nodes) - 1
        if find_last_node is None or find_last_node:
            low = 0
            while low < last:
                middle = (low + last) // 2
                low, last = (low, middle) if fails(nodes[: middle + 1]) else (middle + 1, last)
            if last == len(nodes) - 1 and not fails(nodes):
                return set()
        if not find_last_node:
            high = last
            while first < high:
                middle = (first + high + 1) // 2
                first, high = (
                    (middle, high) if fails(nodes[middle : last + 1]) else (first, middle - 1)
                )
            if first == 0 and not fails(nodes[: last + 1]):
                return set()
        return set(nodes[first : last + 1])

    def _collect_nodes(self, start: str | None, end: str | None) -> list[Node]:
        """Return the nodes from one name to another, both included."""
        found: list[Node] = []
        for n in self.module.graph.nodes:
            if n.op not in CALLABLE_NODE_OPS:
                continue
            if found or start is None or n.name == start:
                found.append(n)
            if n.name == end:
                break
        return found

    def run_nodes(self, start: str | None = None, end: str | None = None) -> None:
        """Run a part of the program in both ways and print where they do not agree.

        Parameters
        ----------
        start, end : str, optional
            The names of the first and the last node.
        """
        nodes = self._collect_nodes(start, end)
        names = [n.name for n in nodes] if self.settings.return_intermediate else []
        error = self._fails(nodes, names, f"{nodes[0].name} to {nodes[-1].name}")
        if error is not None:
            print(error)

    def print_report(self, report: list[str]) -> None:
        """Print what was found in one step.

        Parameters
        ----------
        report : list of str
            The lines.
        """
        print("\n . ".join(report))

    def print_reports(self) -> None:
        """Print what was found in all steps."""
        for report in self.reports:
            self.print_report(report)

    def minimize(
        self,
        start: str | None = None,
        end: str | None = None,
        skip_nodes: list[str] | None = None,
        find_last_node: bool | None = None,
    ) -> set[Node]:
        """Return the nodes that differ; print the settings, the graph and each step.

        Parameters
        ----------
        start, end : str, optional
            The names of the first and the last node.
        skip_nodes : list of str, optional
            Names of nodes that do not run, for the method "skip".
        find_last_node : bool, optional
            Whether only the last node is found, or only the first, for the method "block".

        Raises
        ------
        RuntimeError
            There is no such method, or it needs `skip_nodes`.
        """
        print(self.settings)
        print(self.module.graph)
        nodes, method = self._collect_nodes(start, end), self.settings.traverse_method
        if method == "skip":
            if skip_nodes is None:
                raise RuntimeError("'skip_nodes' can't be None when 'traverse_method' is 'skip'.")
            return self._skip(nodes, skip_nodes)
        if method == "block":
            return self._block(nodes, find_last_node)
        methods: dict[str, Callable[[list[Node]], set[Node]]] = {
            "sequential": self._sequential,
            "binary": self._binary,
            "accumulate": self._accumulate,
            "defined": self._defined,
        }
        if method not in methods:
            raise RuntimeError(f"Unknown traverse method {method}!")
        return methods[method](nodes)
