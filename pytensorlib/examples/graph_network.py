"""
A graph network with few labels
===============================

Of 1,347 handwritten digits only fifty have a label. A graph of which ones look alike lets a network
learn from all of them.

``python -m pytensorlib.examples graph_network`` runs this page as a program; ``--device wgpu``
trains on the GPU.
"""

# %%
# The graph
# ---------
#
# Each digit is a node, joined to the eight that are nearest by their pixels. What a graph layer
# needs is the matrix ``D**-0.5 @ A @ D**-0.5``: neighbours, weighted so that sums stay in
# bounds (Kipf and Welling 2017). Few elements are not zero, so it is a sparse tensor.

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.examples import _common as common
from pytensorlib.nn import functional as F


def graph_of(x, neighbours=8):
    """Return the normalised matrix of the graph, in which each node is its own neighbour too."""
    near = torch.cdist(x, x).topk(neighbours + 1, largest=False).indices
    n = len(x)
    rows = torch.arange(n).repeat_interleave(neighbours + 1)
    a = torch.zeros(n, n)
    a[rows, near.flatten()] = 1.0
    a = torch.maximum(a, a.t())
    scale = a.sum(1).rsqrt()
    return (scale[:, None] * a * scale).to_sparse()


# %%
# The network
# -----------
#
# A graph convolution is a linear layer, then a mean over neighbours: ``graph @ layer(x)``. Two of
# them see neighbours of neighbours.


class GraphNetwork(nn.Module):
    """Two graph convolutions."""

    def __init__(self, width=64, classes=10):
        super().__init__()
        self.first, self.second = nn.Linear(64, width), nn.Linear(width, classes)

    def forward(self, graph, x):
        """Return a score for each class of each node."""
        x = F.dropout(torch.sparse.mm(graph, self.first(x)).relu(), 0.3, self.training)
        return torch.sparse.mm(graph, self.second(x))


class Plain(nn.Module):
    """The same without a graph, to compare with."""

    def __init__(self, width=64, classes=10):
        super().__init__()
        self.first, self.second = nn.Linear(64, width), nn.Linear(width, classes)

    def forward(self, graph, x):
        """Return a score for each class of each node."""
        return self.second(F.dropout(self.first(x).relu(), 0.3, self.training))


# %%
# Training
# --------
#
# The loss looks at the fifty labelled nodes alone, five of each digit. The accuracy is that on all
# others.


def main(argv=None):
    """Train both, and draw what they know."""
    args = common.parse(common.parser("graph_network", __doc__, steps=150, small=5), argv)
    x, y, _, _ = common.digits()
    labelled = torch.cat([(y == k).nonzero()[:5, 0] for k in range(10)])
    others = torch.ones(len(y), dtype=torch.bool)
    others[labelled] = False
    graph = graph_of(x).to(args.device)
    x, labels = x.to(args.device), y[labelled].to(args.device)
    models = nn.ModuleDict({"with the graph": GraphNetwork(), "without": Plain()}).to(args.device)
    optimizer = torch.optim.Adam(models.parameters(), lr=1e-2, weight_decay=5e-4)
    run = common.Run(args, "nodes", len(y), models=models, optimizer=optimizer)
    curves: dict[str, list[float]] = {name: [] for name in models}
    for _ in run.steps():
        models.train()
        scores = [m(graph, x)[labelled] for m in models.values()]
        loss = F.cross_entropy(torch.cat(scores), labels.repeat(2))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.note(loss)
        models.eval()
        with torch.no_grad():
            for name, model in models.items():
                seen = model(graph, x).argmax(1).cpu()
                curves[name].append((seen == y)[others].float().mean().item())
    for name, curve in curves.items():
        if curve:
            print(
                f"accuracy on {others.sum().item()} digits without a label, {name}: {curve[-1]:.1%}"
            )
    with common.figure(args, "graph_network.png", width=6) as axes:
        if axes is None:
            return
        for name, curve in curves.items():
            axes[0].plot(curve, label=name)
        axes[0].set(xlabel="step", ylabel="accuracy on digits without a label")
        axes[0].legend()


if __name__ == "__main__":
    main()
