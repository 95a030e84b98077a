"""Runs an optimizer on other parameters than its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["swap_in_optimizer_params_and_state"]

NAME = "swap_in_optimizer_params_and_state"


def _checked(optimizer: Any, parameters: dict[str, Any], states: Any) -> tuple[Any, list[Any]]:
    """Return the states by number, and for each group its new options and parameters."""
    if not optimizer.state:
        raise RuntimeError(f"{NAME} requires initialized optimizer state.")
    state = states.get("state") if isinstance(states, dict) else None
    groups = states.get("param_groups") if isinstance(states, dict) else None
    if not (isinstance(state, dict) and isinstance(groups, list)):
        raise RuntimeError(
            f"{NAME} requires what optimizer.state_dict() returns, with 'state' and 'param_groups'."
        )
    if len(groups) != len(optimizer.param_groups):
        raise RuntimeError(
            f"{NAME} requires as many param groups as the optimizer has, "
            f"{len(optimizer.param_groups)}, got {len(groups)}."
        )
    values, known, result = list(parameters.values()), set(), []
    for index, (group, new) in enumerate(zip(optimizer.param_groups, groups, strict=True)):
        numbers = new.get("params") if isinstance(new, dict) else None
        if not (isinstance(numbers, list) and all(isinstance(n, int) for n in numbers)):
            raise RuntimeError(
                f"{NAME} requires optimizer.state_dict()-style param groups, with a list of "
                f"numbers as 'params'; group {index} has none."
            )
        if len(numbers) != len(group["params"]) or set(new) != set(group):
            raise RuntimeError(
                f"{NAME}: param group {index} must be as the optimizer's, with "
                f"{len(group['params'])} parameters and the keys {sorted(group)}; it has "
                f"{len(numbers)} and {sorted(new)}."
            )
        if len(numbers) > len(values):
            raise RuntimeError(f"{NAME}: there are fewer parameters than the optimizer has.")
        result.append((new, values[: len(numbers)]))
        values = values[len(numbers) :]
        known |= set(numbers)
    if set(state) - known:
        raise RuntimeError(
            f"{NAME}: 'state' has extra keys {sorted(set(state) - known, key=str)!r}, which are no "
            "numbers of parameters."
        )
    return state, result


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Any, swapin_parameters: dict[str, Any], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Let an optimizer work on other parameters and states within a ``with`` block.

    Parameters
    ----------
    optimizer : Optimizer
        One that has made a step; afterwards it is as it was.
    swapin_parameters : dict of Tensor
        As many as it has, in the order of its own.
    swapin_optim_state : dict
        As its ``state_dict()`` returns it. Tensors in it change as steps change them; what else is
        put into states is lost.

    Raises
    ------
    RuntimeError
        They do not fit the optimizer, or it has no state yet.

    Examples
    --------
    >>> import copy
    >>> import pytensorlib as torch
    >>> w = torch.ones(1, requires_grad=True)
    >>> opt = torch.optim.SGD([w], lr=1.0, momentum=0.5)
    >>> w.grad = torch.ones(1)
    >>> opt.step()
    >>> other = torch.full((1,), 5.0)
    >>> other.grad = torch.ones(1)
    >>> states = copy.deepcopy(opt.state_dict())
    >>> with torch.optim.swap_in_optimizer_params_and_state(opt, {"w": other}, states):
    ...     opt.step()
    >>> other, w.detach()
    (tensor([3.5000]), tensor([0.]))
    """
    state, groups = _checked(optimizer, swapin_parameters, swapin_optim_state)
    before = optimizer.state, [dict(group) for group in optimizer.param_groups]
    try:
        mine: defaultdict[Any, Any] = defaultdict(dict)
        for group, (new, values) in zip(optimizer.param_groups, groups, strict=True):
            group.update(new | {"params": values})
            for value, number in zip(values, new["params"], strict=True):
                mine[value] = dict(state.get(number, {}))
        optimizer.state = mine
        yield
    finally:
        optimizer.state = before[0]
        for group, old in zip(optimizer.param_groups, before[1], strict=True):
            group.clear()
            group.update(old)
