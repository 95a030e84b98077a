"""Settings of PyTorch's compiler: they keep what they are set to, and have no effect."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
assume_static_by_default = True
automatic_dynamic_shapes = True
capture_dynamic_output_shape_ops = False
capture_scalar_outputs = False
compiled_autograd = False
disable = True
dynamic_shapes = True
error_on_nested_fx_trace = True
error_on_recompile = False
guard_nn_modules = True
inline_inbuilt_nn_modules = True
optimize_ddp = True
reorderable_logging_functions: set[Any] = set()
skip_fwd_side_effects_in_bwd_under_checkpoint = False
suppress_errors = False
verbose = False


@contextlib.contextmanager
def patch(changes: Any = None, value: Any = None, **kwargs: Any) -> Iterator[None]:
    """Set some settings for a block or a function."""
    module = sys.modules[__name__]
    named = {changes: value} if isinstance(changes, str) else dict(changes or {})
    named.update(kwargs)
    old = {name: getattr(module, name) for name in named}
    vars(module).update(named)
    try:
        yield
    finally:
        vars(module).update(old)
