"""Random programs of views, writes, hooks and derivatives."""

from __future__ import annotations

from .entry import Accepted

GRAPHS: tuple[Accepted, ...] = (
    Accepted(
        "VALUE",
        "graph",
        r"cosine_similarity\((r\d+), .*masked_fill_\(r\d+ > 0",
        "a comparison of what is rounding alone with zero",
    ),
    Accepted(
        "ACCEPTED|HOOKS",
        "graph",
        r"(modified by an inplace.*|^\[.*)(\.mul_\(r\d| \*= r\d)",
        "a factor that is written to is kept as it was, and the gradient is right",
    ),
    Accepted(
        "VALUE",
        "graph",
        r"saved\(\): (r\d+)\.mul_\(\1\)",
        "the same; PyTorch's is wrong where hooks keep the factor itself",
    ),
    Accepted(
        "ACCEPTED",
        "graph",
        r"(second time|modified by an inplace).*inputs=\[",
        "of the graph only what leads to `inputs` runs",
    ),
    Accepted(
        "ACCEPTED",
        "graph",
        r"moved into the graph interior.*detach_\(\)",
        "what `detach_` took out of the graph may be written to",
    ),
    Accepted("ACCEPTED", "graph", "created in no_grad mode", "such a view stays out of the graph"),
    Accepted("ACCEPTED", "graph", "repeat_interleave", "a number is repeated along dimension 0"),
    Accepted("ACCEPTED", "graph", "INTERNAL ASSERT", "PyTorch's own error"),
    Accepted(
        "ACCEPTED",
        "graph",
        "saved tensor that has been detached in-place",
        "`detach_` leaves what was saved usable",
    ),
    Accepted(
        "REFUSED",
        "graph",
        r"modified by an inplace.*(detach_\(\)|requires_grad_\(False\))",
        "a view goes on when its base left the graph; PyTorch's loses its gradient",
    ),
    Accepted(
        "ACCEPTED|FACT",
        "graph",
        r"(Output \d of|dtype \w+ for None).*(requires_grad_\(False\)|detach_\(\))",
        "the same",
    ),
    Accepted(
        "ACCEPTED",
        "graph",
        r"(r\d+)\.copy_\(\1\): PyTorch RuntimeError: a leaf",
        "PyTorch asks whether a view is a leaf before it asks the base",
    ),
    Accepted(
        "ACCEPTED",
        "graph",
        "elements of the input tensor and the written-to tensor",
        "what is read and written to is read first",
    ),
    Accepted(
        "VALUE",
        "graph",
        r"r\d+\[\d+\] np.*(unbind|diagonal|select|narrow|chunk|split|\[).*"
        r"(_\(r\d+, (alpha=)?0.5\)|\.(add|mul|sub)_\(r| [+*]= r)",
        "the same; PyTorch reads what was written already",
    ),
    Accepted("FACT", "graph", r"writes \d for \d.*Negated", "`mark_dirty` adds no second write"),
    Accepted(
        "REFUSED",
        "graph",
        "second time.*(repeat_interleave|lerp)",
        "the operator keeps a tensor where PyTorch's keeps a number",
    ),
    Accepted(
        "VALUE",
        "graph",
        r"(expand|autograd\.grad\().*median",
        "PyTorch's median of a repeated row is wrong: it reads memory that was never written",
    ),
    Accepted(
        "VALUE", "graph", r"0\.0\) for .*nan.*normalize", "the norm of zero has a second derivative"
    ),
    Accepted(
        "ACCEPTED", "graph", "second time", "a node that keeps numbers only has nothing to free"
    ),
    Accepted(
        "HOOKS",
        "graph",
        r"'node', \d.* for .*'node', \d.*(1 - r|@|layer_norm)|aminmax",
        "how many gradients pass through a node is the affair of how the operator is made",
    ),
    Accepted(
        "STATE",
        "graph",
        "only ours .*Negated",
        "`retain_grad` stays with a tensor that a Function writes to",
    ),
    Accepted(
        "VALUE",
        "graph",
        r"(detach\(\)|data)(; torch\.sin|(; r\d+)?\.mul_)\((2|r\d+, out=.*)\).*backward",
        "a formula reads what was written unseen by the graph, or does not",
    ),
    Accepted(
        "ERROR_CLASS",
        "graph",
        r"(Dimension out of range|0-dim tensor|too many indices).*PyTorch RuntimeError: "
        r"(A view was|Output \d of|a leaf Variable)",
        "which of two faults is told",
    ),
    Accepted(
        "FACT",
        "graph",
        r"requires_grad (True|False) for .*tensor\(\[\]",
        "of nothing there is no second derivative",
    ),
    Accepted(
        "STATE|VALUE|FACT|HOOKS",
        "graph",
        r"((un)?squeeze_|t_|transpose_)\(",
        "views, hooks and `retain_grad` stay with a tensor whose shape changes in place; with "
        "PyTorch's, some stay with what it was",
    ),
    Accepted(
        "ACCEPTED",
        "graph",
        r"(modified by an inplace|returned an invalid gradient).*((un)?squeeze_|t_|transpose_)\(",
        "a change of shape in place writes nothing",
    ),
    Accepted(
        "FACT|STATE",
        "graph",
        r"(retains_grad False for True|only PyTorch's r\d+\.grad).*detach_\(\)",
        "what `detach_` made a leaf retains nothing",
    ),
    Accepted(
        "ACCEPTED",
        "graph",
        r"no attribute 'sum'.*(detach_\(\)|requires_grad_\(False\))",
        "no hook runs after a gradient that a leaf does not want",
    ),
    Accepted(
        "REFUSED",
        "graph",
        r"register_hook.*returns mul.*(unbind|split|chunk).*register_hook.*register_hook",
        "PyTorch asks a view for its node at the first hook only",
    ),
    Accepted(
        "ACCEPTED|REFUSED",
        "graph",
        "Can't detach views|more than one element of the written-to",
        "which results are views, or are expanded, is the affair of how the operator is made",
    ),
    Accepted(
        "FACT",
        "graph",
        r"requires_grad True for False.*autograd\.grad\(.*requires_grad_\(\).*no_grad",
        "which gradients are views is the affair of how they are computed",
    ),
)
