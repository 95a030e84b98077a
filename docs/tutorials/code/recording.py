"""
Recording a step
================

``torch.compile`` runs your Python in every call, and puts the work on tensors off until it can run
together. ``torch.graph`` goes further: it runs what was recorded, without Python.
"""

# %%
# A training step
# ---------------
#
# The whole step is one function: gradients to zero, forward, backward, the optimizer's step.

import time

import pytensorlib as torch
from pytensorlib import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x, y = torch.randn(64, 32), torch.randn(64, 1)


def step(x, y):
    """Take one step; return the loss."""
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


# %%
# What is in it
# -------------
#
# ``draw_step`` runs a function once, and draws every operator that it called, backward and the
# optimizer included. For the forward pass of this model alone:

from pytensorlib.utils.show import draw_step

with torch.no_grad():
    picture = draw_step(lambda x: model(x).square().mean(), x)
picture

# %%
# Compiled
# --------
#
# The decorated step gives the same numbers to the bit. What it prints, counts or raises is what
# it would be without ``compile``, because Python runs in every call.


def losses_of(function, count=50):
    """Return the losses of some steps from the same start."""
    torch.manual_seed(0)
    for layer in model:
        if isinstance(layer, nn.Linear):
            layer.reset_parameters()
    optimizer.state.clear()
    return [function(x, y).item() for _ in range(count)]


compiled = torch.compile(step)
losses_of(step) == losses_of(compiled)

# %%
# Small tensors show what a step costs beside its arithmetic.


def milliseconds(function, count=300):
    """Return the time of a step."""
    for _ in range(20):
        function(x, y)
    begin = time.perf_counter()
    for _ in range(count):
        function(x, y)
    return (time.perf_counter() - begin) / count * 1e3


times = {"as it is": milliseconds(step), "torch.compile": milliseconds(compiled)}

# %%
# Recorded
# --------
#
# ``torch.graph`` records the kernels of a call and runs them again for arguments of the same kind.
# Python's effects do not repeat: a ``print`` in the function prints while it is recorded, and then
# no more. What cannot be recorded runs as it is, with one warning; ``fullgraph=True`` raises.

recorded = torch.graph(step)
print("the same losses:", losses_of(step, 5) == losses_of(recorded, 5))
times["torch.graph"] = milliseconds(recorded)

from matplotlib import pyplot as plt

plt.figure(figsize=(6, 2.2), layout="constrained")
plt.barh(list(times), list(times.values()))
plt.gca().invert_yaxis()
plt.xlabel("milliseconds for a step on the machine that built this page")

# %%
# When to use which
# -----------------
#
# ``torch.compile`` is safe anywhere: use it first. ``torch.graph`` is for a step that does the same
# each time, where the last microseconds count; on a GPU it replays dispatches that are kept.
# :doc:`/how/recording` tells how both work.
