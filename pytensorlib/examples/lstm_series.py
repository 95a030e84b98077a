"""
An LSTM that continues a series
===============================

It sees a noisy wave, learns to say the next value, and then goes on by itself for 200 steps.

``python -m pytensorlib.examples lstm_series`` runs this page as a program; ``--device wgpu`` trains
on the GPU.
"""

# %%
# The series
# ----------
#
# It is made, so that we know the truth: a quick wave, a slow one, and noise. The last 200 values
# are kept for the test.

import math

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.examples import _common as common
from pytensorlib.nn import functional as F

KEPT = 200


def series(length=1600, noise=0.03):
    """Return the noisy values and the true ones."""
    t = torch.arange(length, dtype=torch.float32)
    true = 0.6 * torch.sin(2 * math.pi * t / 25) + 0.4 * torch.sin(2 * math.pi * t / 60)
    return true + noise * torch.randn(length), true


# %%
# The model
# ---------
#
# ``nn.LSTM`` reads a batch of series and gives its state at each step; a linear layer makes the
# next value of it. ``batch_first=True`` puts the batch before the time, as elsewhere in PyTorch.


class Forecaster(nn.Module):
    """An LSTM and a linear layer."""

    def __init__(self, hidden=64):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x, state=None):
        """Return the next value after each of (batch, time), and the state at the end."""
        y, state = self.lstm(x[..., None], state)
        return self.head(y)[..., 0], state


@torch.no_grad()
def go_on(model, x, count):
    """Read a series, then return `count` values of its own."""
    y, state = model(x[None])
    value, found = y[:, -1:], []
    for _ in range(count):
        found.append(value)
        value, state = model(value, state)
    return torch.cat(found, dim=1)[0]


# %%
# Training
# --------
#
# A step takes 32 windows of 160 values. The loss compares what the model says after each value
# with the one that comes.


def main(argv=None):
    """Train, continue the series, and draw it."""
    args = common.parse(common.parser("lstm_series", __doc__, steps=600, small=8), argv)
    values, true = series()
    known = values[:-KEPT]
    model = Forecaster().to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, total_iters=600)
    batch, length = 32, 160
    run = common.Run(args, "values", batch * length, model=model, optimizer=optimizer, lr=schedule)
    ahead = torch.arange(length + 1)
    for _ in run.steps():
        starts = torch.randint(0, len(known) - length, (batch, 1))
        window = known[starts + ahead].to(args.device)
        y, _ = model(window[:, :-1])
        loss = F.mse_loss(y, window[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        run.note(loss)

    ahead_of_it = go_on(model, known.to(args.device), KEPT).cpu()
    error = (ahead_of_it - true[-KEPT:]).abs()
    print(f"mean error of the first 50 values ahead {error[:50].mean().item():.3f}")
    print(f"mean error of all {KEPT} values ahead     {error.mean().item():.3f}")
    with common.figure(args, "lstm_series.png", 2, width=5) as axes:
        if axes is None:
            return
        axes[0].plot(run.losses, linewidth=0.7)
        axes[0].set(xlabel="step", ylabel="mean squared error", yscale="log")
        axes[1].plot(range(-100, 0), known[-100:].numpy(), color="gray", label="seen")
        axes[1].plot(true[-KEPT:].numpy(), color="tab:blue", label="truth")
        axes[1].plot(ahead_of_it.numpy(), "--", color="tab:orange", label="the model's own")
        axes[1].set(xlabel="values ahead")
        axes[1].legend(loc="lower left", fontsize="small")


if __name__ == "__main__":
    main()
