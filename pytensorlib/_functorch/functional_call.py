"""`functional_call` and `stack_module_state` at PyTorch's private path."""

from __future__ import annotations

from ..func import functional_call, stack_module_state, stacked_leaf

__all__ = ["construct_stacked_leaf", "functional_call", "stack_module_state"]

construct_stacked_leaf = stacked_leaf
