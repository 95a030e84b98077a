"""Pictures and tables of models, graphs and profiles, for notebooks and files.

None of these needs another package. What they return shows itself in a notebook, prints as text,
and writes a file with ``save``.
"""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from ._layout import Layout

__all__ = ["Picture", "Summary", "draw_graph", "draw_step", "summary", "timeline"]


class Picture:
    """An SVG picture of nodes and arrows.

    Parameters
    ----------
    layout : Layout
        What is drawn.

    Attributes
    ----------
    svg : str
        The picture's text.
    nodes : list of str
        What the nodes say.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils.show import draw_graph
    >>> x = torch.ones(2, requires_grad=True)
    >>> picture = draw_graph(x.exp())
    >>> picture.nodes
    ['ExpBackward0', 'leaf (2)']
    """

    def __init__(self, layout: Layout) -> None:
        self.svg = layout.svg()
        self.nodes = layout.texts

    def __repr__(self) -> str:
        return f"<Picture of {len(self.nodes)} nodes>"

    def _repr_html_(self) -> str:
        return f'<div style="overflow:auto">{self.svg}</div>'

    def save(self, path: Any) -> None:
        """Write the picture to a file.

        Parameters
        ----------
        path : str or Path
            Such as "graph.svg"; browsers open it.

        Examples
        --------
        >>> import pytensorlib as torch, tempfile
        >>> from pytensorlib.utils.show import draw_graph
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     draw_graph(torch.ones(2, requires_grad=True).exp()).save(folder + "/graph.svg")
        """
        Path(path).write_text(self.svg, encoding="utf-8")


def _size(tensor: Any) -> str:
    return f"({', '.join(map(str, tensor.shape))})"


def draw_graph(*tensors: Any, names: dict[str, Any] | None = None) -> Picture:
    """Draw the graph that `backward` would walk: nodes of ``grad_fn``, and the leaves.

    Parameters
    ----------
    *tensors : Tensor
        Results that require grad.
    names : dict, optional
        Tensors by name, such as ``dict(model.named_parameters())``: leaves are called so.

    Returns
    -------
    Picture
        The results at the top.

    Raises
    ------
    ValueError
        A tensor has no graph, because nothing that it was computed from requires grad.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils.show import draw_graph
    >>> model = torch.nn.Linear(3, 1)
    >>> picture = draw_graph(model(torch.ones(2, 3)), names=dict(model.named_parameters()))
    >>> sorted(picture.nodes)
    ['AddmmBackward0', 'bias (1)', 'weight (1, 3)']
    """
    called = {id(tensor): name for name, tensor in (names or {}).items()}
    layout = Layout()
    todo = []
    for tensor in tensors:
        if tensor.grad_fn is None:
            raise ValueError(
                f"draw_graph: a tensor of size {_size(tensor)} has no graph; it must be computed "
                "from one that has requires_grad=True"
            )
        todo.append(tensor.grad_fn)
    seen = set()
    kept = []  # objects of nodes are made when asked for: kept, their numbers stay theirs
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        kept.append(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None:
            layout.add(node, f"{called.get(id(leaf), 'leaf')} {_size(leaf)}", "leaf")
        elif "AccumulateGrad" in node.name():
            layout.add(node, "leaf that is gone", "leaf")
        else:
            layout.add(node, node.name())
        for after, _ in node.next_functions:
            if after is not None:
                layout.join(node, after)
                todo.append(after)
    return Picture(layout)


def draw_step(function: Any, *args: Any, **kwargs: Any) -> Picture:
    """Run a function once, and draw every operator that it called and how data went.

    Backward and the optimizer's step are in it, where the function has them: it is what
    `torch.compile` and `torch.graph` record.

    Parameters
    ----------
    function : callable
        Is called once.
    *args, **kwargs
        Its arguments.

    Returns
    -------
    Picture
        Operators from top to bottom, in the order of the data.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils.show import draw_step
    >>> draw_step(lambda x: (x * 2).relu().sum(), torch.ones(3)).nodes
    ['input (3)', 'mul (3)', 'relu (3)', 'sum ()']
    """
    import pytensorlib as torch

    from ._python_dispatch import TorchDispatchMode
    from ._pytree import tree_leaves

    layout = Layout()
    source: dict[Any, int] = {}  # a tensor -> the operator that wrote it last
    kept: list[Any] = []  # no memory is used again meanwhile

    def keys(x: Any) -> list[Any]:
        """Return what tells a tensor: another object may stand for the same memory."""
        try:
            return [id(x), (x.data_ptr(), x.shape)] if x.data_ptr() else [id(x)]
        except RuntimeError:
            return [id(x)]

    class Watch(TorchDispatchMode):
        """Notes each call."""

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            given = [x for x in tree_leaves((args, kwargs or {})) if isinstance(x, torch.Tensor)]
            result = func(*args, **(kwargs or {}))
            made = [x for x in tree_leaves(result) if isinstance(x, torch.Tensor)]
            number = len(kept)
            name = str(func).removeprefix("aten.").partition(".")[0]
            size = f" {_size(made[0])}" if made else ""
            kept.append((given, result))
            before = []
            for x in given:
                found = [source[key] for key in keys(x) if key in source]
                if not found:
                    found = [-len(source) - 1]
                    source.update(dict.fromkeys(keys(x), found[0]))
                    layout.add(found[0], f"input {_size(x)}", "leaf")
                before.append(found[0])
            layout.add(number, name + size)
            for number_before in dict.fromkeys(before):
                layout.join(number_before, number)
            for x in made:
                source.update(dict.fromkeys(keys(x), number))
            return result

    with Watch():
        function(*args, **kwargs)
    return Picture(layout)


class Summary:
    """A table of a model's layers.

    Parameters
    ----------
    rows : list of tuple
        For each module its depth, name, class, shape of the result, parameters and their bytes.
    totals : dict
        Sums over the model.

    Attributes
    ----------
    rows, totals
        As given.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils.show import summary
    >>> summary(torch.nn.Linear(2, 3)).totals["parameters"]
    9
    """

    HEAD = ("layer", "result", "parameters", "memory")

    def __init__(self, rows: list[Any], totals: dict[str, int]) -> None:
        self.rows, self.totals = rows, totals

    def _cells(self) -> list[tuple[str, str, str, str]]:
        cells = []
        for depth, name, kind, shape, count, size in self.rows:
            label = f"{'  ' * depth}{name}: {kind}" if name else kind
            cells.append((label, shape, f"{count:,}" if count else "", _bytes(size)))
        return cells

    def _foot(self) -> list[str]:
        t = self.totals
        lines = [
            f"parameters {t['parameters']:,}, of them trained {t['trained']:,}",
            f"memory: parameters {_bytes(t['bytes']) or '0 B'}, buffers "
            f"{_bytes(t['buffer_bytes']) or '0 B'}",
        ]
        if t["result_bytes"]:
            lines.append(
                f"results of the layers without layers in them {_bytes(t['result_bytes'])}"
            )
        return lines

    def __repr__(self) -> str:
        cells = [self.HEAD, *self._cells()]
        widths = [max(len(row[i]) for row in cells) for i in range(4)]
        rule = "-" * (sum(widths) + 6)
        lines = [
            f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}  {d:>{widths[3]}}".rstrip()
            for a, b, c, d in cells
        ]
        return "\n".join([lines[0], rule, *lines[1:], rule, *self._foot()])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in self.HEAD)
        body = "".join(
            f'<tr><td style="text-align:left;white-space:pre">{html.escape(a)}</td>'
            + "".join(f"<td>{html.escape(x)}</td>" for x in rest)
            + "</tr>"
            for a, *rest in self._cells()
        )
        foot = "<br>".join(map(html.escape, self._foot()))
        return f"<table><tr>{head}</tr>{body}</table><p>{foot}</p>"


def _bytes(size: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} B" if size else ""


def tensor_html(tensor: Any) -> str:
    """Return what a notebook shows of a tensor: its size, type and device, and its numbers."""
    about = [_size(tensor), str(tensor.dtype).partition(".")[2], str(tensor.device)]
    if tensor.requires_grad:
        about.append("requires grad" if tensor.is_leaf else f"from {tensor.grad_fn.name()}")
    head = html.escape(", ".join(about))
    return (
        f'<div style="font-size:85%;opacity:.75">{type(tensor).__name__} {head}</div>'
        f'<pre style="margin:0;font-size:90%">{html.escape(repr(tensor))}</pre>'
    )


def module_html(module: Any) -> str:
    """Return what a notebook shows of a model: its table, two levels of it where it is large."""
    try:
        table = summary(module)
        if len(table.rows) > 60:
            table = summary(module, depth=2)
    except (RuntimeError, ValueError, AttributeError):  # parameters that have no size yet
        return f"<pre>{html.escape(repr(module))}</pre>"
    return table._repr_html_()


def summary(model: Any, *inputs: Any, depth: int | None = None) -> Summary:
    """Return a table of a model: its layers, the shapes of their results, parameters and memory.

    Parameters
    ----------
    model : nn.Module
        Parameters that layers share count once.
    *inputs : Tensor
        With these the model is run once, without gradients, to learn the shapes; its mode and its
        state stay as they were, but for what a layer counts in `forward` itself.
    depth : int, optional
        So many levels of modules are shown; all where it is left out.

    Returns
    -------
    Summary
        Prints as text, and as a table in a notebook.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils.show import summary
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
    >>> summary(model, torch.ones(2, 4))
    layer        result  parameters  memory
    ---------------------------------------
    Sequential   (2, 8)          40   160 B
      0: Linear  (2, 8)          40   160 B
      1: ReLU    (2, 8)
    ---------------------------------------
    parameters 40, of them trained 40
    memory: parameters 160 B, buffers 0 B
    results of the layers without layers in them 128 B
    """
    import pytensorlib as torch

    shapes: dict[int, str] = {}
    results = 0

    def seen(module: Any, args: Any, result: Any) -> None:
        nonlocal results
        first = result
        while isinstance(first, (tuple, list)) and first:
            first = first[0]
        if isinstance(first, torch.Tensor):
            shapes[id(module)] = _size(first)
            if not any(True for _ in module.children()):
                results += first.numel() * first.element_size()

    if inputs:
        handles = [module.register_forward_hook(seen) for module in model.modules()]
        modes = {module: module.training for module in model.modules()}
        try:
            model.eval()
            with torch.no_grad():
                model(*inputs)
        finally:
            for handle in handles:
                handle.remove()
            for module, mode in modes.items():
                module.training = mode
    rows = []

    def visit(module: Any, name: str, level: int) -> None:
        if depth is not None and level > depth:
            return
        own = list(module.parameters())
        size = sum(p.numel() * p.element_size() for p in own)
        count = sum(p.numel() for p in own)
        kind = type(module).__name__
        rows.append((level, name, kind, shapes.get(id(module), ""), count, size))
        for child_name, child in module.named_children():
            visit(child, child_name, level + 1)

    visit(model, "", 0)
    parameters, buffers = list(model.parameters()), list(model.buffers())
    totals = {
        "parameters": sum(p.numel() for p in parameters),
        "trained": sum(p.numel() for p in parameters if p.requires_grad),
        "bytes": sum(p.numel() * p.element_size() for p in parameters),
        "buffer_bytes": sum(b.numel() * b.element_size() for b in buffers),
        "result_bytes": results,
    }
    return Summary(rows, totals)


def timeline(profile: Any, path: Any) -> None:
    """Write a profile as one HTML file that any browser opens, without a server.

    Threads are rows, and what runs inside something else stands below it. The wheel zooms, a drag
    moves, and the table below sums up by name.

    Parameters
    ----------
    profile : torch.profiler.profile
        One that has ended.
    path : str or Path
        Such as "trace.html".

    Raises
    ------
    ValueError
        The profile has no events.

    Examples
    --------
    >>> import pytensorlib as torch, tempfile
    >>> from pytensorlib.utils.show import timeline
    >>> with torch.profiler.profile() as profile:
    ...     x = torch.ones(100, 100) @ torch.ones(100, 100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     timeline(profile, folder + "/trace.html")
    """
    rows: list[list[Any]] = []
    for event in profile.events():
        begin, end = event.time_range.start, event.time_range.end
        level, above = 0, event.cpu_parent
        while above is not None:
            level, above = level + 1, above.cpu_parent
        about = ", ".join(str(shape) for shape in event.input_shapes or [] if shape)
        rows.append([event.name, f"thread {event.thread}", level, begin, end - begin, about])
        rows += [
            [kernel.name, "GPU (time only)", 0, begin, kernel.duration, event.name]
            for kernel in getattr(event, "kernels", ())
        ]
    if not rows:
        raise ValueError("timeline: the profile has no events; end its `with` block first")
    first = min(row[3] for row in rows)
    for row in rows:
        row[3] = round(row[3] - first, 3)
        row[4] = round(row[4], 3)
    page = (Path(__file__).parent / "_timeline.html").read_text(encoding="utf-8")
    data = json.dumps(rows, separators=(",", ":")).replace("<", "\\u003c")
    Path(path).write_text(page.replace("/*DATA*/[]", data), encoding="utf-8")
