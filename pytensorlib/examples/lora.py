"""
LoRA: fine-tuning with few weights
==================================

A network that reads upright digits learns to read digits that lie on their side, by matrices of
rank four beside its frozen weights.

``python -m pytensorlib.examples lora`` runs this page as a program; ``--device wgpu`` trains on the
GPU.
"""

# %%
# The idea (Hu et al. 2021): a trained layer stays as it is, and a small correction is added to
# it, the product of a thin matrix and a flat one. Only these two are trained, kept and sent.

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.examples import _common as common
from pytensorlib.nn import functional as F


class LoRA(nn.Module):
    """A frozen linear layer, and a correction of low rank."""

    def __init__(self, layer, rank=4, scale=2.0):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), scale
        self.down = nn.Parameter(torch.randn(rank, layer.in_features) / rank)
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        """Return the layer's result, and the correction."""
        return self.layer(x) + self.scale * F.linear(F.linear(x, self.down), self.up)


# %%
# ``up`` begins at zero: at first nothing changes. ``adapt`` puts a correction beside every linear
# layer of any model.


def adapt(model, rank=4):
    """Replace the linear layers inside a model; returns the model."""
    model.requires_grad_(False)
    for name, child in model.named_children():
        if isinstance(child, nn.Linear):
            setattr(model, name, LoRA(child, rank))
        else:
            adapt(child, rank)
    return model


def adapters(model):
    """Return the trained weights alone: what a file for this task needs to hold."""
    return {name: p for name, p in model.state_dict().items() if name.endswith((".up", ".down"))}


# %%
# Two tasks
# ---------
#
# The base model learns upright digits. Then the same images come turned by a quarter.


def turned(x):
    """Return images (N, 64) turned by a quarter."""
    return x.view(-1, 8, 8).rot90(1, (1, 2)).reshape(-1, 64)


@torch.no_grad()
def accuracy(model, x, y):
    """Return the share of images that the model reads right."""
    return (model(x).argmax(1) == y).float().mean().item()


def train(run, model, optimizer, x, y):
    """Train by batches of 64 images."""
    for _ in run.steps():
        chosen = torch.randint(0, len(x), (64,)).to(x.device)
        loss = F.cross_entropy(model(x[chosen]), y[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.note(loss)
    return run.losses


def main(argv=None):
    """Train the base, adapt it, and compare."""
    args = common.parse(common.parser("lora", __doc__, steps=600, small=10), argv)
    x, y, test_x, test_y = (part.to(args.device) for part in common.digits())
    base = nn.Sequential(
        *(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    ).to(args.device)
    optimizer = torch.optim.AdamW(base.parameters(), lr=1e-3)
    resumed, args.resume = args.resume, False  # only the second part goes on
    first = []
    if not resumed:
        print("upright digits, all weights")
        first = train(common.Run(args, "images", 64), base, optimizer, x, y)
    before = accuracy(base, test_x, test_y), accuracy(base, turned(test_x), test_y)

    model = adapt(base).to(args.device)
    few = [p for p in model.parameters() if p.requires_grad]
    count, whole = sum(p.numel() for p in few), sum(p.numel() for p in model.parameters())
    print(f"turned digits, {count:,} of {whole:,} weights")
    optimizer = torch.optim.AdamW(few, lr=3e-3)
    args.resume = resumed
    run = common.Run(args, "images", 64, model=model, optimizer=optimizer)
    second = train(run, model, optimizer, turned(x), y)
    after = accuracy(model, turned(test_x), test_y)
    if not resumed:
        print(f"before: upright {before[0]:.1%}, turned {before[1]:.1%}")
    print(f"after:  turned {after:.1%}")

    # A file for the task holds the corrections alone.
    args.out.mkdir(parents=True, exist_ok=True)
    torch.save(adapters(model), args.out / "adapters.pt")
    print(f"{args.out / 'adapters.pt'}: {(args.out / 'adapters.pt').stat().st_size:,} bytes")
    with common.figure(args, "lora.png", width=6) as axes:
        if axes is None:
            return
        axes[0].plot(first, linewidth=0.7, label="upright, all weights")
        axes[0].plot(second, linewidth=0.7, label="turned, LoRA")
        axes[0].set(xlabel="step", ylabel="loss", yscale="log")
        axes[0].legend()


if __name__ == "__main__":
    main()
