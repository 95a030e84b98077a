"""Checkpoints that keep the results of some operators and compute only the others again."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import pytensorlib as pt

from .. import _ops, random
from ._python_dispatch import TorchDispatchMode
from ._pytree import tree_map

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
]

# Operators that choosing what is kept passes by: they compute nothing.
SAC_IGNORED_OPS: set[Any] = {_ops.ops.aten.detach.default}


# Operators that draw numbers: what is drawn after them must not change where they are not repeated.
_DRAWING = tuple(
    "bernoulli cauchy dropout exponential geometric multinomial normal poisson rand uniform".split()
)


class CheckpointPolicy(enum.Enum):
    """What to do with an operator's results, for ``create_selective_checkpoint_contexts``.

    Results are kept, or computed again; what a compiler would be free to choose (``PREFER``) is
    done as said. Nothing is moved to another device.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.utils.checkpoint.CheckpointPolicy.MUST_SAVE.value
    0
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy is told beside the operator: whether it is computed again.

    Parameters
    ----------
    is_recompute : bool
        Whether this is the second time.

    Examples
    --------
    >>> from pytensorlib.utils.checkpoint import SelectiveCheckpointContext
    >>> SelectiveCheckpointContext(is_recompute=False).is_recompute
    False
    """

    def __init__(self, *, is_recompute: bool) -> None:
        self.is_recompute = is_recompute


class _Kept:
    """A result, and the version that it had."""

    def __init__(self, value: Any) -> None:
        self.tensor = isinstance(value, pt.Tensor)
        self.value = value.detach() if self.tensor else value
        self.version = value._version if self.tensor else 0

    def get(self, changes: bool) -> Any:
        if self.tensor and not changes and self.value._version != self.version:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated; pass "
                "allow_cache_entry_mutation=True where that is meant"
            )
        return self.value


class _Selecting(TorchDispatchMode):
    """Asks a policy for each operator."""

    again = False

    def __init__(self, policy: Callable[..., Any], kept: dict[Any, list[Any]], changes: bool):
        super().__init__()
        self.policy, self.kept, self.changes = policy, kept, changes

    def saves(self, func: Any, args: Any, kwargs: Any) -> bool:
        context = SelectiveCheckpointContext(is_recompute=self.again)
        policy = self.policy(context, func, *args, **kwargs)
        if isinstance(policy, bool):
            return policy
        if policy in (CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD):
            raise NotImplementedError(
                f"create_selective_checkpoint_contexts: {policy} moves results to the host, which "
                "is not done here; return MUST_SAVE"
            )
        return policy in (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


class _First(_Selecting):
    """Keeps results."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in SAC_IGNORED_OPS:
            return func(*args, **kwargs)
        saves = self.saves(func, args, kwargs)
        out = func(*args, **kwargs)
        if saves:
            draws = any(word in func._opname for word in _DRAWING)
            state = random._states() if draws else None
            self.kept[func].append((tree_map(_Kept, out), state))
        return out


class _Again(_Selecting):
    """Takes them instead of computing them again."""

    again = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in SAC_IGNORED_OPS or not self.saves(func, args, kwargs):
            return func(*args, **kwargs)
        kept = self.kept.get(func)
        if kept is None:
            raise RuntimeError(f"{func} encountered during backward, but not found in storage")
        if not kept:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any "
                "region computed under selective activation checkpoint."
            )
        out, state = kept.pop(0)
        if state is not None:
            random._restore(state)
        return tree_map(lambda k: k.get(self.changes), out)


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Callable[..., Any] | Sequence[Any],
    allow_cache_entry_mutation: bool = False,
) -> tuple[Any, Any]:
    """Return two contexts, for ``checkpoint(context_fn=)``, that keep what a policy says.

    Parameters
    ----------
    policy_fn_or_list : callable or list of OpOverload
        A function of a `SelectiveCheckpointContext`, the operator and its arguments, that returns a
        `CheckpointPolicy`; or the operators whose results are kept.
    allow_cache_entry_mutation : bool, default False
        Whether results may have been written to since they were kept.

    Returns
    -------
    tuple
        The context of the first time, and that of the second.

    Raises
    ------
    TypeError
        `policy_fn_or_list` is neither a function nor a list.
    ValueError
        Something in the list is no operator such as ``torch.ops.aten.mm.default``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from functools import partial
    >>> from pytensorlib.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> keep = partial(create_selective_checkpoint_contexts, [torch.ops.aten.mm.default])
    >>> x = torch.ones(2, 2, requires_grad=True)
    >>> y = checkpoint(lambda x: (x @ x).sin().sum(), x, use_reentrant=False, context_fn=keep)
    >>> y.backward()
    >>> x.grad
    tensor([[-1.6646, -1.6646],
            [-1.6646, -1.6646]])
    """
    if isinstance(policy_fn_or_list, (list, tuple)):
        for op in policy_fn_or_list:
            if not isinstance(op, _ops.OpOverload):
                hint = "; name one of its forms, such as .default"
                raise ValueError(
                    "create_selective_checkpoint_contexts: expected operators of type OpOverload, "
                    f"got {op}{hint if isinstance(op, _ops.OpOverloadPacket) else ''}"
                )
        chosen = frozenset(policy_fn_or_list)

        def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
            saved = op in chosen
            return CheckpointPolicy.MUST_SAVE if saved else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError(
            "create_selective_checkpoint_contexts: policy_fn_or_list must be either a function or "
            f"a list of ops, got {type(policy_fn_or_list).__name__}"
        )
    kept: dict[Any, list[Any]] = defaultdict(list)
    return (
        _First(policy, kept, allow_cache_entry_mutation),
        _Again(policy, kept, allow_cache_entry_mutation),
    )
