"""
Gradients
=========

``backward()`` computes how a number would change with everything that it was made from. This page
shows the graph behind it, functions with a derivative of your own, and hooks.
"""

# %%
# The first gradient
# ------------------
#
# ``requires_grad=True`` asks for a gradient. What is computed from such a tensor remembers how.

import pytensorlib as torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = (x**2).sum()
y

# %%
# ``grad_fn`` is the last step. ``backward`` walks from it to the leaves, and adds to their
# ``grad``.

y.backward()
x.grad

# %%
# It *adds*: that is why a training loop has ``optimizer.zero_grad()``.

(x**2).sum().backward()
x.grad

# %%
# The graph
# ---------
#
# ``draw_graph`` draws what ``backward`` would walk. Here is a small model; its parameters are the
# leaves.

from pytensorlib.utils.show import draw_graph

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
loss = model(torch.randn(16, 4)).square().mean()
draw_graph(loss, names=dict(model.named_parameters()))

# %%
# Without a graph
# ---------------
#
# In ``torch.no_grad()`` nothing is remembered, which is quicker and takes less memory.

with torch.no_grad():
    print((x * 2).requires_grad)

# %%
# Second derivatives
# ------------------
#
# Gradients are made of the same operators, so they have gradients too.

x = torch.linspace(-3, 3, 200, requires_grad=True)
y = torch.sin(x) * torch.exp(-0.1 * x**2)
(first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
(second,) = torch.autograd.grad(first.sum(), x)

from matplotlib import pyplot as plt

plt.figure(figsize=(6, 3.4), layout="constrained")
for values, name in ((y, "f"), (first, "f'"), (second, "f''")):
    plt.plot(x.detach(), values.detach(), label=name)
plt.legend()

# %%
# A function with a derivative of your own
# ----------------------------------------
#
# A ``Function`` has a forward and a backward. This one rounds, and lets the gradient pass as if it
# did not: the *straight-through* estimator.


class Round(torch.autograd.Function):
    """Rounds; the gradient is that of the identity."""

    @staticmethod
    def forward(ctx, x):
        """Return the nearest integers."""
        return x.round()

    @staticmethod
    def backward(ctx, g):
        """Return the gradient as it came."""
        return g


x = torch.tensor([0.2, 1.7], requires_grad=True)
Round.apply(x).sum().backward()
x.grad

# %%
# ``gradcheck`` compares a derivative with differences of the function itself. It wants float64. For
# a cube it agrees:


class Cube(torch.autograd.Function):
    """The third power."""

    @staticmethod
    def forward(ctx, x):
        """Return x * x * x."""
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        """Return 3 x^2 times the gradient."""
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


torch.autograd.gradcheck(Cube.apply, (torch.randn(3, dtype=torch.float64, requires_grad=True),))

# %%
# Hooks
# -----
#
# A hook sees a gradient on its way, and may change it. This one clips.

x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x * torch.tensor([10.0, 0.1])
handle = y.register_hook(lambda g: g.clamp(-1, 1))
(y * 5).sum().backward()
handle.remove()
x.grad

# %%
# ``register_full_backward_hook`` does the same for a module, and ``register_forward_hook`` sees
# results. This collects the mean of each layer's result:

means = {}
for name, layer in model.named_children():
    layer.register_forward_hook(
        lambda module, args, result, name=name: means.update({name: result.mean().item()})
    )
_ = model(torch.zeros(1, 4))
sorted(means)
