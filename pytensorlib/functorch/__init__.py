"""The package `functorch`, which PyTorch's wheel brings: `torch.func` by its older names.

As `torch` means this package, ``import functorch`` finds it, too.
"""

from __future__ import annotations

from .. import __version__ as __version__
from .._functorch.deprecated import (
    combine_state_for_ensemble,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    make_functional,
    make_functional_with_buffers,
    vjp,
    vmap,
)
from .._functorch.make_functional import FunctionalModule, FunctionalModuleWithBuffers
from ..fx.experimental.proxy_tensor import make_fx

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "make_fx",
    "vjp",
    "vmap",
]
