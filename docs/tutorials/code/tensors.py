"""
Tensors and views
=================

A tensor is an array of numbers with a type, on a device. A view is another tensor over the same
memory. This page has all you need to read the others.
"""

# %%
# Import the library under PyTorch's name: every program below would run on either.

import pytensorlib as torch

# %%
# Making tensors
# --------------
#
# From Python's lists, from a shape, from random numbers. The seed gives the numbers that PyTorch
# gives on the CPU.

x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
x

# %%
x.shape, x.dtype, x.device

# %%
torch.manual_seed(0)
torch.rand(2, 3)

# %%
# Computing
# ---------
#
# Shapes that do not match are *broadcast*: dimensions of size one are repeated. A row of three and
# a column of two make a table of six.

row, column = torch.arange(3), torch.arange(2)[:, None]
row + 10 * column

# %%
# Reductions take a dimension. ``keepdim`` keeps it with size one, so that the result broadcasts
# against what it came from.

x / x.sum(dim=1, keepdim=True)

# %%
# Views
# -----
#
# ``view``, ``t``, slices and ``expand`` copy nothing. Writing to a view writes to the memory that
# both share.

first = x[0]
first.zero_()
x

# %%
# How a tensor lies in memory is its *strides*: how many elements to go for one step along each
# dimension. A transposed matrix has the same memory and other strides.

x.stride(), x.t().stride(), x.t().is_contiguous()

# %%
# ``reshape`` copies where it must, ``view`` refuses, and says so.

try:
    x.t().view(6)
except RuntimeError as error:
    print(error)

# %%
# NumPy
# -----
#
# ``from_numpy`` and ``numpy()`` share memory, too.

import numpy as np

array = np.zeros(3, dtype=np.float32)
torch.from_numpy(array).add_(1)
array

# %%
# Types
# -----
#
# Types are promoted as in PyTorch: a Python number takes part by its kind alone, so an integer
# tensor plus 1.5 is float32, and a float16 tensor plus 1.5 stays float16.

(torch.ones(1, dtype=torch.int64) + 1.5).dtype, (torch.ones(1, dtype=torch.float16) + 1.5).dtype

# %%
# Devices
# -------
#
# A GPU is the device ``"wgpu"``. ``to`` copies; a result is where its operands are.

device = "wgpu" if torch.wgpu.is_available() else "cpu"
y = torch.ones(2, 3).to(device)
(y * 2).sum().item()

# %%
# A picture of broadcasting
# -------------------------
#
# ``matplotlib`` takes tensors as they are: two vectors of 60 numbers make an image of 60 x 60.

from matplotlib import pyplot as plt

t = torch.linspace(-3, 3, 60)
plt.figure(figsize=(4, 3.2), layout="constrained")
plt.imshow(torch.sin(t[:, None] * t) * torch.exp(-0.2 * t**2), cmap="viridis")
plt.colorbar()
