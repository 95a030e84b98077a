"""The base of all optimizers: parameter groups, per-parameter state, hooks, saving and loading."""

from __future__ import annotations

import functools
import sys
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from copy import deepcopy
from itertools import chain
from typing import Any, ClassVar

import pytensorlib as pt
from pytensorlib import _C

from ._steps import (  # noqa: F401  (optimizers written for PyTorch import them from here)
    ParamsT,
    _default_to_fused_or_foreach,
    _disable_dynamo_if_unsupported,
    _dispatch_sqrt,
    _get_capturable_supported_devices,
    _get_foreach_kernels_supported_devices,
    _get_scalar_dtype,
    _get_value,
    _params_t,
    _stack_if_compiling,
    _use_grad_for_differentiable,
    _view_as_real,
)

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

StateDict = dict[str, Any]
DeviceDict, DeviceDtypeDict = dict[Any, Any], dict[tuple[Any, Any], Any]
Hooks = OrderedDict[int, Callable[..., Any]]

_global_optimizer_pre_hooks: Hooks = OrderedDict()
_global_optimizer_post_hooks: Hooks = OrderedDict()


class _Required:
    """Stands for a group option that has no default and must be given."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


# State that is one number for a parameter, whatever its type: bfloat16 would lose count.
_NUMBERS = ("step", "mu_product", "eta", "mu")

_WANTED = "An optimizer takes a module's parameters, as in SGD(model.parameters(), lr=0.1)"


class HookHandle:
    """Removes one hook; also a context manager that removes it at the end."""

    _count: ClassVar[int] = 0

    def __init__(self, hooks: Hooks) -> None:
        self.hooks = hooks
        self.id = HookHandle._count
        HookHandle._count += 1

    def remove(self) -> None:
        """Take the hook away; does nothing the second time."""
        self.hooks.pop(self.id, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def _register(hooks: Hooks, hook: Callable[..., Any], prepend: bool = False) -> HookHandle:
    handle = HookHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> HookHandle:
    """Call ``hook(optimizer, args, kwargs)`` before the step of every optimizer."""
    return _register(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> HookHandle:
    """Call ``hook(optimizer, args, kwargs)`` after the step of every optimizer."""
    return _register(_global_optimizer_post_hooks, hook)


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Run the step hooks around `step`, once, however deep ``super().step()`` goes."""

    @functools.wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__  # a wrapper around an optimizer may have no hooks of its own
        pre = own.get("_optimizer_step_pre_hooks")
        post = own.get("_optimizer_step_post_hooks")
        outermost = type(self).step is hooked
        self._opt_called = True  # schedules warn when they step first
        if (
            not (pre or post or _global_optimizer_pre_hooks or _global_optimizer_post_hooks)
            or not outermost
        ):
            return step(self, *args, **kwargs)
        return _hooked(step, pre, post, (self, *args), kwargs)

    return hooked


def _hooked(step: Callable[..., Any], pre: Any, post: Any, args: Any, kwargs: Any) -> Any:
    self = args[0]
    for hook in [*_global_optimizer_pre_hooks.values(), *(pre or {}).values()]:
        changed = hook(self, args, kwargs)
        if changed is None:
            continue
        if not (isinstance(changed, tuple) and len(changed) == 2):
            raise RuntimeError(
                f"optimizer.step: a pre-hook must return None or a tuple of (new_args, "
                f"new_kwargs), but got {changed!r}"
            )
        args, kwargs = changed
    result = step(*args, **kwargs)
    for hook in [*(post or {}).values(), *_global_optimizer_post_hooks.values()]:
        hook(self, args, kwargs)
    return result


class Optimizer:
    """Base class of all optimizers.

    Parameters
    ----------
    params : iterable of Tensor, of (name, Tensor), or of dict
        What to optimize. Each dict is a parameter group with a ``params`` entry and options of
        its own; an option it does not give comes from `defaults`.
    defaults : dict
        The options of a group that does not give them.

    Raises
    ------
    TypeError
        If `params` is a single Tensor, or holds something that is not a Tensor.
    ValueError
        If there are no parameters, one is not a leaf, or one is in two groups.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> class Descent(optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...
    ...     @torch.no_grad()
    ...     def step(self):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 p -= group["lr"] * p.grad
    >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
    >>> w.square().sum().backward()
    >>> Descent([w], lr=0.25).step()
    >>> w.detach()
    tensor([ 0.5000, -1.0000])
    """

    _opt_called = False
    _known_step: Any = None  # what `step` was in the instance when a schedule was made
    state: defaultdict[Any, Any]
    param_groups: list[dict[str, Any]]

    @staticmethod
    def _group_tensors_by_device_and_dtype(
        tensorlistlist: list[list[Any]], with_indices: bool = False
    ) -> Any:
        """Return lists as long as each other cut by the device and type of the first's tensors."""
        from ..utils._foreach_utils import _group_tensors_by_device_and_dtype as grouped

        return grouped(tensorlistlist, with_indices)

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hooks()
        if isinstance(params, pt.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {params.type()}"
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        try:
            groups = list(params)
        except TypeError as error:
            if callable(params):  # a module, or its method `parameters`
                error.args = (f"{error}. {_WANTED}.",)
            raise
        if not groups:
            raise ValueError(
                "optimizer got an empty parameter list. A module sees only layers that are its "
                "attributes or in a ModuleList, not those in a plain list, and parameters() can "
                "be walked only once."
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

    def _make_hooks(self) -> None:
        for name in (
            "_optimizer_step_pre_hooks",
            "_optimizer_step_post_hooks",
            "_optimizer_state_dict_pre_hooks",
            "_optimizer_state_dict_post_hooks",
            "_optimizer_load_state_dict_pre_hooks",
            "_optimizer_load_state_dict_post_hooks",
        ):
            self.__dict__.setdefault(name, OrderedDict())

    _optimizer_step_pre_hooks: Hooks
    _optimizer_step_post_hooks: Hooks
    _optimizer_state_dict_pre_hooks: Hooks
    _optimizer_state_dict_post_hooks: Hooks
    _optimizer_load_state_dict_pre_hooks: Hooks
    _optimizer_load_state_dict_post_hooks: Hooks

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_hooks()
        # Options that an older file does not know take this optimizer's default.
        for group in self.param_groups:
            for option, value in self.defaults.items():
                group.setdefault(option, value)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] * (i > 0) + [f"Parameter Group {i}"]
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    # ------------------------------------------------------------------ hooks

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return new ones."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookHandle:
        """Call ``hook(optimizer)`` before `state_dict`."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookHandle:
        """Call ``hook(optimizer, state_dict)`` after `state_dict`; it may return another."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookHandle:
        """Call ``hook(optimizer, state_dict)`` before loading; it may return another."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookHandle:
        """Call ``hook(optimizer)`` after loading."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # ----------------------------------------------------------------- groups

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group, for example the layers that are unfrozen during training.

        Parameters
        ----------
        param_group : dict
            ``params`` and the options that differ from the defaults.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, pt.Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "order of a set changes between runs. Use a list instead."
            )
        params = list(params)
        named = [isinstance(p, tuple) for p in params]
        if any(named):
            if not all(named):
                raise ValueError(
                    "all optimizer params should be with/without names. Some param names are "
                    "missing"
                )
            param_group["param_names"] = [name for name, _ in params]
            params = [p for _, p in params]
        param_group["params"] = params
        for p in params:
            if not isinstance(p, pt.Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    f"{pt.typename(p)}. {_WANTED}."
                )
            leaf = p.is_leaf or p.retains_grad or self.defaults.get("differentiable")
            if not leaf:
                raise ValueError(
                    "can't optimize a non-leaf Tensor. It is the result of an operation "
                    "(also .to(device) is one): optimize what it was computed from, or "
                    "x.detach().requires_grad_()."
                )
        for option, default in self.defaults.items():
            if default is required and option not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization "
                    f"parameter {option}"
                )
            param_group.setdefault(option, default)
        ids = {id(p) for p in params}
        if len(ids) != len(params):
            self._repeats = True
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, "
                "this will cause an error",
                stacklevel=3,
            )
        if self.param_groups and ("param_names" in param_group) != (
            "param_names" in self.param_groups[0]
        ):
            with_names = "with" if "param_names" in param_group else "without"
            raise ValueError(
                "all optimizer param groups should be with/without names. "
                f"cannot add param group {with_names} names to the optimizer"
            )
        for group in self.param_groups:
            if not ids.isdisjoint(id(p) for p in group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def _all_params(self) -> Iterator[Any]:
        return chain.from_iterable(group["params"] for group in self.param_groups)

    # ------------------------------------------------------- saving and loading

    def state_dict(self) -> dict[str, Any]:
        """Return ``{"state": ..., "param_groups": ...}`` with parameters named by number.

        The tensors are the optimizer's own, not copies.
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {
            (numbers[id(key)] if isinstance(key, pt.Tensor) else key): value
            for key, value in self.state.items()
        }
        _mark_shards(self.state)
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, result)
            result = result if changed is None else changed
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` of the same kind of optimizer returned.

        State tensors move to the device and, where that is a floating one, the dtype of their
        parameter; step counts and other numbers of the optimizer keep theirs.

        Raises
        ------
        ValueError
            If the groups differ in number or size.
        """
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        groups, saved_groups = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved_groups):
            raise ValueError(
                "loaded state dict has a different number of parameter groups: "
                f"{len(saved_groups)} for {len(groups)}"
            )
        for i, (group, saved) in enumerate(zip(groups, saved_groups, strict=True)):
            if len(group["params"]) != len(saved["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size "
                    f"of optimizer's group: group {i} has {len(saved['params'])} parameters "
                    f"there and {len(group['params'])} here"
                )
        by_number = dict(
            zip(
                chain.from_iterable(saved["params"] for saved in saved_groups),
                self._all_params(),
                strict=True,
            )
        )
        options = {
            id(p): saved
            for group, saved in zip(groups, saved_groups, strict=True)
            for p in group["params"]
        }
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            param = by_number.get(key) if isinstance(key, Hashable) else None
            if param is None:
                state[key] = value
            else:
                state[param] = _placed(value, param, options[id(param)])
        for group, saved in zip(groups, saved_groups, strict=True):
            saved["params"] = group["params"]
            if "param_names" in group:
                saved["param_names"] = group["param_names"]
            else:
                saved.pop("param_names", None)
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    # ---------------------------------------------------------------- training

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters.

        Parameters
        ----------
        set_to_none : bool
            Drop the gradients (default, cheaper) instead of filling them with zeros.
        """
        if set_to_none:
            for group in self.param_groups:
                _C._drop_grads(group["params"])
            return
        for p in self._all_params():
            if p.grad is None:
                continue
            if p.grad.grad_fn is not None:
                p.grad.detach_()
            else:
                p.grad.requires_grad_(False)
            p.grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once; each optimizer says how.

        Parameters
        ----------
        closure : callable, optional
            Clears the gradients, computes the loss, calls backward and returns the loss.
        """
        raise NotImplementedError(f"{type(self).__name__} must define step")


class GradientOptimizer(Optimizer):
    """An optimizer that updates each parameter from its own gradient and state.

    A subclass gives `_new_state` and `_update`; one that can do a whole group in one fused op
    overrides `_update_group`.
    """

    _takes_sparse = False
    #: Whether a group has a parameter twice: it is updated twice then, with one state.
    _repeats = False
    #: What a state has as tensors of one element.
    _counts: ClassVar[tuple[str, ...]] = _NUMBERS

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # Old files have plain numbers.
        for group in self.param_groups:
            for p in group["params"]:
                kept = self.state.get(p, {})
                for name in self._counts:
                    if isinstance(kept.get(name), (int, float)):
                        kept[name] = new_step(p, group) + kept[name]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once; returns the loss of `closure` if there is one."""
        loss = None
        if closure is not None:
            with pt.enable_grad():
                loss = closure()
        with _C._Mode(bool(self.defaults.get("differentiable"))):
            for group in self.param_groups:
                if not self._repeats and self._fused_group(group):
                    continue
                params = [p for p in group["params"] if p.grad is not None]
                for p in params:
                    if p.grad.is_sparse and not self._takes_sparse:
                        raise RuntimeError(
                            f"{type(self).__name__} does not support sparse gradients, please "
                            "consider SparseAdam instead"
                        )
                    if not self.state.get(p) and (fresh := self._new_state(p, group)):
                        self.state[p] = fresh
                if self._repeats:
                    GradientOptimizer._update_group(self, params, group)
                elif params:
                    self._update_group(params, group)
        return loss

    def _fused_group(self, group: dict[str, Any]) -> bool:
        """Update a whole group whose state is there in one op; False where that cannot be."""
        return False

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def _update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        raise NotImplementedError

    def _update_group(self, params: list[Any], group: dict[str, Any]) -> None:
        # What the state holds is looked up before the first update, as PyTorch does: it matters
        # where a parameter comes twice.
        states = [self.state.get(p, {}) for p in params]
        own = [dict(state) for state in states] if self._repeats else states
        for p, state in zip(params, own, strict=True):
            g = -p.grad if group.get("maximize") else p.grad
            self._update_one(p, g, state, group)
        if self._repeats:
            for state, new in zip(states, own, strict=True):
                state.update(new)

    def _update_one(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if not p.is_complex():
            self._update(p, g, state, group)
            return
        # The update of a complex number is that of its two real parts.
        real = {
            key: pt.view_as_real(v) if isinstance(v, pt.Tensor) and v.is_complex() else v
            for key, v in state.items()
        }
        self._update(pt.view_as_real(p), pt.view_as_real(g), real, group)
        for key, v in real.items():
            if state[key] is None and v is not None:
                state[key] = pt.view_as_complex(v)


def _mark_shards(states: Any) -> None:
    """Let state that belongs to rows of a tensor be known as such, where processes share some."""
    places: Any = sys.modules.get(f"{pt.__name__}.distributed._places")
    for p, values in states.items() if places else ():
        place = places.place_of(p) if isinstance(p, pt.Tensor) else None
        for value in values.values() if place else ():
            if isinstance(value, pt.Tensor) and value.shape == p.shape:
                places.mark(value, place)


def _placed(value: Any, param: Any, group: dict[str, Any], key: str | None = None) -> Any:
    """Return loaded state `value` on the device, and if floating in the dtype, of `param`."""
    if isinstance(value, pt.Tensor):
        if key == "step" or (key in _NUMBERS and value.ndim == 0):
            if group.get("capturable"):
                return value.to(dtype=pt.float32, device=param.device)
            if group.get("fused"):
                value = value.to(dtype=pt.float32)
            return value.cpu() if value._is_gpu else value
        if param.is_floating_point() or param.is_complex():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {k: _placed(v, param, group, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_placed(v, param, group) for v in value)
    return value


# ------------------------------------------------------------- shared by optimizers


def new_step(p: Any, group: dict[str, Any]) -> Any:
    """Return a step count of zero: on the host, where it is read, unless the group is capturable.

    A fused step takes it as a number, and would wait for a GPU that has it.
    """
    if group.get("capturable"):
        return pt.zeros((), dtype=pt.float32, device=p.device)
    double = pt.get_default_dtype() == pt.float64 and not group.get("fused")
    return pt.tensor(0.0, dtype=pt.float64 if double else pt.float32, device="cpu")


def step_value(step: Any, group: dict[str, Any]) -> Any:
    """Return the count as a number, or as the tensor where the step must stay differentiable."""
    if group.get("capturable") or group.get("differentiable"):
        return step
    return step.item()


def number(x: Any) -> float:
    """Return a Python number for a number or a tensor of one element."""
    return x.item() if isinstance(x, pt.Tensor) else x


def rate_of(group: dict[str, Any]) -> Any:
    """Return the learning rate as a number; as it is where the step must stay differentiable."""
    return group["lr"] if group.get("differentiable") else number(group["lr"])


def _is_wide(p: Any) -> bool:
    """Return whether kernels for `p` take numbers as they are, and half types round them first."""
    return p.dtype in (pt.float32, pt.float64)


def add_times(p: Any, update: Any, x: Any) -> None:
    """``p += update * x`` in place."""
    p.add_(update, alpha=x) if _is_wide(p) else p.add_(update * x)


def add_times_quotient(p: Any, above: Any, below: Any, x: Any) -> None:
    """``p += above / below * x`` in place."""
    p.addcdiv_(above, below, value=x) if _is_wide(p) else p.add_(above / below * x)


def sqrt(x: Any) -> Any:
    """Return the square root of a number or a tensor."""
    return x.sqrt() if isinstance(x, pt.Tensor) else x**0.5


def _beside(scale: Any, p: Any) -> Any:
    """Return a tensor of one element where kernels for `p` take it."""
    return scale if scale.ndim == 0 and not scale.requires_grad else scale.to(p.device)


def add_scaled(p: Any, update: Any, scale: Any) -> None:
    """``p += scale * update`` in place; `scale` is a number or a tensor of one element."""
    if isinstance(scale, pt.Tensor):
        p.addcmul_(update, _beside(scale, p))
    else:
        p.add_(update, alpha=scale)


def add_quotient(p: Any, above: Any, below: Any, scale: Any) -> None:
    """``p += scale * above / below`` in place; `scale` is a number or a tensor of one element."""
    if isinstance(scale, pt.Tensor):
        p.addcdiv_(above * _beside(scale, p), below)
    else:
        p.addcdiv_(above, below, value=scale)


def decayed(p: Any, g: Any, weight_decay: Any) -> Any:
    """Return the gradient with the L2 penalty added."""
    return g.add(p, alpha=number(weight_decay)) if number(weight_decay) != 0 else g


def check(condition: bool, what: str, value: Any) -> None:
    """Raise ValueError ``Invalid <what>: <value>`` unless the condition holds."""
    if not condition:
        raise ValueError(f"Invalid {what}: {value}")


def check_lr(lr: Any) -> None:
    """Raise ValueError unless `lr` is at least zero and, if a tensor, of one element."""
    if isinstance(lr, pt.Tensor) and lr.numel() != 1:
        raise ValueError(f"Tensor lr must be 1-element, got shape {tuple(lr.shape)}")
    check(bool(lr >= 0.0), "learning rate", lr)


def check_betas(betas: Any) -> None:
    """Raise ValueError unless both decay rates lie in [0, 1)."""
    for i, beta in enumerate(betas):
        check(bool(0.0 <= beta < 1.0), f"beta parameter at index {i}", beta)


def may_fuse(group: dict[str, Any]) -> bool:
    """Whether the options of the group leave it to us to choose one fused op, which there is."""
    if group.get("differentiable") or group.get("capturable") or group.get("fused") is False:
        return False
    if group.get("foreach") or not group["params"]:
        return False
    first = group["params"][0]
    # Kernels of GPUs take float32; of other types each operation has its own.
    return first.dtype == pt.float32 or first.is_cpu


def can_fuse(params: list[Any], group: dict[str, Any]) -> bool:
    """Whether one fused op covers the group: real floating tensors and plain numbers."""
    if not may_fuse(group):
        return False
    first = params[0]
    if not first.is_floating_point():
        return False
    dtype, device = first.dtype, first.device
    return all(
        p.dtype == dtype
        and p.device == device
        and p.grad.dtype == dtype
        and not p.grad.is_sparse
        and not _C._is_alias_of(p, p.grad)
        for p in params
    )
