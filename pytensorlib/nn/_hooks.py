"""Calling a module: hooks around ``forward`` and around its gradients."""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

import pytensorlib as pt

from .. import Tensor
from ..autograd import Function
from ._base import fast_attributes, make_module_base

_global_forward_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_forward_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict[int, bool] = OrderedDict()
_global_forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
_global_backward_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_backward_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_is_full_backward_hook: bool | None = None


class RemovableHandle:
    """The handle that registering a hook returns; ``remove()`` unregisters the hook."""

    next_id = 0

    def __init__(self, hooks: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extras = () if extra_dict is None else extra_dict
        extras = extras if isinstance(extras, (list, tuple)) else (extras,)
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extras)

    def remove(self) -> None:
        """Forget the hook; a second call does nothing."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> Any:
        return self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref)

    def __setstate__(self, state: Any) -> None:
        hooks, self.id, extras = state
        # A dead dictionary is replaced by an empty one, which makes `remove` harmless.
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extras if d is not None)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


class BackwardHookFunction(Function):
    """The identity; its backward hands the gradients to ``gate``."""

    @staticmethod
    def forward(ctx: Any, gate: Callable, *tensors: Tensor) -> Any:
        ctx.gate = gate
        ctx.likes = None
        if gate.__name__ == "_output_gate":  # whose hooks see None for what got no gradient
            ctx.set_materialize_grads(False)
            ctx.likes = [(t.shape, t.dtype, t.device) if t.requires_grad else None for t in tensors]
        ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        passed = ctx.gate(grads)
        if ctx.likes is not None:
            passed = [g if g is not None else _zeros(k) for g, k in zip(passed, ctx.likes)]
        return None, *passed


def _listed(*hooks: dict[int, Callable]) -> list[tuple[int, Callable]]:
    """Return hooks in their order, though another thread may register or remove one meanwhile."""
    try:
        return [pair for each in hooks for pair in each.items()]
    except (KeyError, RuntimeError):  # one was changed while it was read
        return _listed(*hooks)


def _zeros(like: tuple | None) -> Tensor | None:
    return None if like is None else pt.zeros(like[0], dtype=like[1], device=like[2])


def _spread(values: Any, positions: list[int], size: int) -> tuple:
    """A tuple of ``size`` entries with ``values`` at ``positions`` and None elsewhere."""
    slots: list[Any] = [None] * size
    for position, value in zip(positions, values):
        slots[position] = value
    return tuple(slots)


def _taken(told: str, of: str, changed: Any, grads: tuple) -> tuple:
    """The gradients that a hook returned for ``grads``."""
    if len(changed) != len(grads):
        raise RuntimeError(
            f"{told} returned an invalid number of {of}, got {len(changed)}, but expected "
            f"{len(grads)}"
        )
    for grad in changed:
        if not (grad is None or isinstance(grad, Tensor)):
            raise TypeError(f"expected Variable, but hook returned '{type(grad).__name__}'")
    return tuple(changed)


class BackwardHook:
    """Runs a module's backward hooks for one call of it.

    Two identity nodes surround the call. The one on the outputs runs the pre-hooks and keeps
    the gradients; the one on the inputs runs the hooks with both.
    """

    def __init__(self, module: Any, hooks: list[Callable], pre_hooks: list[Callable]) -> None:
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs: Any = None
        self.n_inputs = self.n_outputs = -1
        self.input_positions: list[int] | None = None
        self.output_positions: list[int] = []

    @staticmethod
    def _through(gate: Callable, args: tuple) -> tuple[tuple, list[int] | None]:
        positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        if not (pt.is_grad_enabled() and any(args[i].requires_grad for i in positions)):
            return args, None
        passed = list(args)
        outputs = BackwardHookFunction.apply(gate, *[args[i] for i in positions])
        for i, tensor in zip(positions, outputs):
            passed[i] = tensor
        return tuple(passed), positions

    def on_inputs(self, args: tuple) -> tuple:
        """``args`` with the tensors sent through the inner node."""
        args, self.input_positions = self._through(self._input_gate, args)
        self.n_inputs = len(args)
        return args

    def on_outputs(self, result: Any) -> Any:
        """``result`` with the tensors sent through the outer node."""
        single = not isinstance(result, tuple)
        args = (result,) if single else result
        self.n_outputs = len(args)
        self.output_positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        args, _ = self._through(self._output_gate, args)
        if single:
            return args[0]
        named = hasattr(result, "_fields")
        return type(result)(*args) if named else type(result)(args)

    def _output_gate(self, grads: Any) -> Any:
        grads = _spread(grads, self.output_positions, self.n_outputs)
        for hook in self.pre_hooks:
            changed = hook(self.module, grads)
            if changed is None:
                continue
            grads = _taken("Backward pre hook", "grad_output", changed, grads)
        self.grad_outputs = grads
        if self.input_positions is None:
            self._without_inputs(grads)
        return tuple(grads[i] for i in self.output_positions)

    def _without_inputs(self, grads: tuple) -> None:
        nothing = (None,) * self.n_inputs
        for hook in self.hooks:
            changed = hook(self.module, nothing, grads)
            if changed is not None and any(g is not None for g in changed):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should "
                    "always return None or None for all gradients."
                )
        self.grad_outputs = None

    def _input_gate(self, grads: Any) -> Any:
        if self.grad_outputs is None or self.input_positions is None:
            return grads  # the outputs had no part in this backward
        grads = _spread(grads, self.input_positions, self.n_inputs)
        for hook in self.hooks:
            changed = hook(self.module, grads, self.grad_outputs)
            if changed is None:
                continue
            grads = _taken("Backward hook", "grad_input", changed, grads)
        self.grad_outputs = None
        return tuple(grads[i] for i in self.input_positions)


def _first_tensor(result: Any) -> Any:
    while not isinstance(result, Tensor):
        if isinstance(result, dict):
            result = next(v for v in result.values() if isinstance(v, Tensor))
        else:
            result = result[0]
    return result


P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class _Forwards(Protocol[P, R_co]):
    """A class with a ``forward``: type checkers give a call of the module its signature."""

    @property
    def forward(self) -> Callable[P, R_co]: ...


@make_module_base
class Hookable:
    """The part of ``Module`` that calls ``forward`` and whatever was hooked around it."""

    if TYPE_CHECKING:

        def __call__(self: _Forwards[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...
        def __getattr__(self, name: str) -> Any: ...

    # One flag says that some hook exists: on the class for global hooks, on the instance for
    # its own. A call that finds no hook left takes the flag down again.
    _hooked = False
    _compiled_call_impl: Callable[..., Any] | None = None

    training: bool
    forward: Callable[..., Any]
    _is_full_backward_hook: bool | None
    _forward_hooks: OrderedDict[int, Callable]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: OrderedDict[int, Callable]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _backward_hooks: OrderedDict[int, Callable]
    _backward_pre_hooks: OrderedDict[int, Callable]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        fast_attributes(cls)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return self._call_as_it_is(args, kwargs)

    def _name_path(self, error: Exception) -> None:
        """Note on an error where it happened, as a path from the outermost module called."""
        inner, path = getattr(error, "_module_path", (None, ""))
        for name, child in self.__dict__.get("_modules", {}).items():
            if inner is not None and child is inner:
                path = f"{name}.{path}" if path else name
                break
        else:
            if inner is not None:
                return  # called from outside the module that owns it
        try:
            error._module_path = (self, path)  # type: ignore[attr-defined]
            notes = [n for n in getattr(error, "__notes__", []) if not n.startswith("in module ")]
            if path:
                notes.append(f"in module {path} of {type(self).__name__}")
                error.__notes__ = notes
        except AttributeError:
            pass  # an exception class with slots keeps its own text only

    def _unhooked(self) -> bool:
        if _global_forward_hooks or _global_forward_pre_hooks:
            return False
        if _global_backward_hooks or _global_backward_pre_hooks:
            return False
        Hookable._hooked = False
        if self._forward_hooks or self._forward_pre_hooks:
            return False
        if self._backward_hooks or self._backward_pre_hooks:
            return False
        if self._compiled_call_impl is None:
            self.__dict__.pop("_hooked", None)
        return True

    def _call_hooked(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        return self._call_as_it_is(args, kwargs)

    def _call_as_it_is(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        if self._unhooked():
            return self.forward(*args, **kwargs)
        if not (_global_forward_hooks_always_called or self._forward_hooks_always_called):
            return self._run_hooks(args, kwargs, set())
        called: set[int] = set()
        try:
            return self._run_hooks(args, kwargs, called)
        except Exception:
            self._run_missed_hooks(args, kwargs, called)
            raise

    def _run_missed_hooks(self, args: tuple, kwargs: dict[str, Any], called: set[int]) -> None:
        result = None
        for key, hook in _listed(_global_forward_hooks, self._forward_hooks):
            always = (_global_forward_hooks_always_called, self._forward_hooks_always_called)
            if key in called or not any(key in d for d in always):
                continue
            try:
                changed = self._call_forward_hook(key, hook, args, kwargs, result)
                result = result if changed is None else changed
            except Exception as error:
                warnings.warn(
                    "a forward hook with ``always_call=True`` raised an exception that was "
                    f"silenced as another error was raised in forward: {error}",
                    stacklevel=2,
                )

    def _call_forward_hook(
        self, key: int, hook: Callable, args: tuple, kwargs: dict[str, Any], result: Any
    ) -> Any:
        if key in self._forward_hooks_with_kwargs or key in _global_forward_hooks_with_kwargs:
            return hook(self, args, kwargs, result)
        return hook(self, args, result)

    def _run_pre_hooks(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        for key, hook in _listed(_global_forward_pre_hooks, self._forward_pre_hooks):
            if key in self._forward_pre_hooks_with_kwargs:
                changed = hook(self, args, kwargs)
                if changed is None:
                    continue
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(
                        "forward pre-hook must return None or a tuple of "
                        f"(new_args, new_kwargs), but got {changed}."
                    )
                args, kwargs = changed
            else:
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        return args, kwargs

    def _run_hooks(self, args: tuple, kwargs: dict[str, Any], called: set[int]) -> Any:
        full: list[Callable] = []
        plain: list[Callable] = []
        of_all, own = _listed(_global_backward_hooks), _listed(self._backward_hooks)
        (full if _global_is_full_backward_hook else plain).extend(hook for _, hook in of_all)
        (full if self._is_full_backward_hook else plain).extend(hook for _, hook in own)
        before = [h for _, h in _listed(_global_backward_pre_hooks, self._backward_pre_hooks)]

        args, kwargs = self._run_pre_hooks(args, kwargs)
        gradient = BackwardHook(self, full, before) if full or before else None
        if gradient is not None:
            args = gradient.on_inputs(args)
        result = self.forward(*args, **kwargs)
        for key, hook in _listed(_global_forward_hooks, self._forward_hooks):
            called.add(key)
            changed = self._call_forward_hook(key, hook, args, kwargs, result)
            result = result if changed is None else changed
        if gradient is not None:
            if not isinstance(result, (Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a "
                    f"tuple of Tensors but received {type(result)}",
                    stacklevel=3,
                )
            result = gradient.on_outputs(result)
        if plain:
            node = _first_tensor(result).grad_fn
            for hook in plain if node is not None else ():
                node.register_hook(lambda gi, go, hook=hook: hook(self, gi, go))
        return result

    def _register(self, hooks: OrderedDict, hook: Callable, prepend: bool, *flags: Any) -> Any:
        handle = RemovableHandle(hooks, extra_dict=flags)
        hooks[handle.id] = hook
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        self.__dict__["_hooked"] = True
        return handle

    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Run ``hook(module, args)`` before ``forward``; what it returns replaces the arguments.

        Parameters
        ----------
        hook : callable
            Returns the arguments, or None to leave them.
        prepend : bool, default False
            Run it before the other hooks.
        with_kwargs : bool, default False
            It is ``hook(module, args, kwargs)`` and returns both or None.

        Returns
        -------
        RemovableHandle
            Takes the hook away.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> from pytensorlib import nn
        >>> layer = nn.Identity()
        >>> handle = layer.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
        >>> layer(torch.ones(2))
        tensor([2., 2.])
        """
        flags = self._forward_pre_hooks_with_kwargs
        handle = self._register(self._forward_pre_hooks, hook, prepend, flags)
        if with_kwargs:
            flags[handle.id] = True
        return handle

    def register_forward_hook(
        self,
        hook: Callable,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Run ``hook(module, args, output)`` after ``forward``; a result replaces the output.

        Parameters
        ----------
        hook : callable
            Returns an output, or None to leave it.
        prepend : bool, default False
            Run it before the other hooks.
        with_kwargs : bool, default False
            It is ``hook(module, args, kwargs, output)``.
        always_call : bool, default False
            Run it also when ``forward`` raises.

        Returns
        -------
        RemovableHandle
            Takes the hook away.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> from pytensorlib import nn
        >>> layer, shapes = nn.Linear(3, 2), []
        >>> handle = layer.register_forward_hook(lambda module, args, y: shapes.append(y.shape))
        >>> _ = layer(torch.ones(5, 3))
        >>> handle.remove()
        >>> shapes
        [torch.Size([5, 2])]
        """
        with_names, always = self._forward_hooks_with_kwargs, self._forward_hooks_always_called
        handle = self._register(self._forward_hooks, hook, prepend, with_names, always)
        if with_kwargs:
            with_names[handle.id] = True
        if always_call:
            always[handle.id] = True
        return handle

    def register_backward_hook(self, hook: Callable) -> RemovableHandle:
        """The deprecated form of ``register_full_backward_hook``: sees the last node only."""
        self._choose_backward(False)
        return self._register(self._backward_hooks, hook, False)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Run ``hook(module, grad_input, grad_output)`` once both gradients are known.

        Parameters
        ----------
        hook : callable
            Returns gradients to replace `grad_input`, or None.
        prepend : bool, default False
            Run it before the other hooks.

        Returns
        -------
        RemovableHandle
            Takes the hook away.

        Raises
        ------
        RuntimeError
            The module has hooks of the deprecated form.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> from pytensorlib import nn
        >>> layer, x = nn.Identity(), torch.ones(2, requires_grad=True)
        >>> handle = layer.register_full_backward_hook(lambda module, g_in, g_out: (g_in[0] * 3,))
        >>> layer(x).sum().backward()
        >>> x.grad
        tensor([3., 3.])
        """
        self._choose_backward(True)
        return self._register(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """Run ``hook(module, grad_output)`` before the module's backward; a result replaces it.

        Parameters
        ----------
        hook : callable
            Returns gradients to replace `grad_output`, or None.
        prepend : bool, default False
            Run it before the other hooks.

        Returns
        -------
        RemovableHandle
            Takes the hook away.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> from pytensorlib import nn
        >>> layer, x = nn.Identity(), torch.ones(2, requires_grad=True)
        >>> handle = layer.register_full_backward_pre_hook(lambda module, g: (g[0] * 3,))
        >>> layer(x).sum().backward()
        >>> x.grad
        tensor([3., 3.])
        """
        return self._register(self._backward_pre_hooks, hook, prepend)

    def _choose_backward(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. Please use only one of them."
            )
        self._is_full_backward_hook = full


def _register_global(hooks: OrderedDict, hook: Callable, *flags: Any) -> RemovableHandle:
    handle = RemovableHandle(hooks, extra_dict=flags)
    hooks[handle.id] = hook
    Hookable._hooked = True
    return handle


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """Run ``hook(module, args)`` before the ``forward`` of every module."""
    return _register_global(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Run ``hook(module, args, output)`` after the ``forward`` of every module."""
    names, always = _global_forward_hooks_with_kwargs, _global_forward_hooks_always_called
    handle = _register_global(_global_forward_hooks, hook, names, always)
    if with_kwargs:
        names[handle.id] = True
    if always_call:
        always[handle.id] = True
    return handle


def _choose_global_backward(full: bool) -> None:
    global _global_is_full_backward_hook
    if _global_backward_hooks and _global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as global Module "
            "hooks. Please use only one of them."
        )
    _global_is_full_backward_hook = full


def register_module_backward_hook(hook: Callable) -> RemovableHandle:
    """The deprecated form of ``register_module_full_backward_hook``."""
    _choose_global_backward(False)
    return _register_global(_global_backward_hooks, hook)


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """Run ``hook(module, grad_input, grad_output)`` in the backward of every module."""
    _choose_global_backward(True)
    return _register_global(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """Run ``hook(module, grad_output)`` before the backward of every module."""
    return _register_global(_global_backward_pre_hooks, hook)
