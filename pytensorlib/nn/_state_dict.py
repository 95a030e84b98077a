"""``state_dict`` and ``load_state_dict``."""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from typing import Any

import pytensorlib as pt

from .. import Tensor
from ._advice import about_keys
from ._hooks import RemovableHandle
from .parameter import Parameter, is_lazy

EXTRA_STATE = "_extra_state"


class _IncompatibleKeys(namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class Stateful:
    """The part of ``Module`` that turns it into a dictionary of tensors and back."""

    _version = 1
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: OrderedDict[int, Callable]
    _state_dict_pre_hooks: OrderedDict[int, Callable]
    _load_state_dict_pre_hooks: OrderedDict[int, Callable]
    _load_state_dict_post_hooks: OrderedDict[int, Callable]

    def get_extra_state(self) -> Any:
        """What else ``state_dict`` should hold; override together with ``set_extra_state``."""
        raise RuntimeError(
            f"{type(self).__name__}.get_extra_state was reached without being overridden: "
            "override it together with set_extra_state."
        )

    def set_extra_state(self, state: Any) -> None:
        """Take back what ``get_extra_state`` gave."""
        raise RuntimeError(
            f"{type(self).__name__}.set_extra_state was reached without being overridden: "
            "override it together with get_extra_state."
        )

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Run ``hook(module, prefix, keep_vars)`` before the module is saved."""
        return _add(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Run ``hook(module, state_dict, prefix, local_metadata)`` after it; returns None."""
        hook._from_public_api = True  # type: ignore[attr-defined]
        return _add(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously registered via register_state_dict_post_hook"
            )
        return _add(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Run a hook with the module and ``_load_from_state_dict``'s arguments before it."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable, with_module: bool = False
    ) -> RemovableHandle:
        return _add(
            self._load_state_dict_pre_hooks, _WrappedHook(hook, self if with_module else None)
        )

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Run ``hook(module, incompatible_keys)`` after loading; it may edit the lists."""
        return _add(self._load_state_dict_post_hooks, hook)

    def _has_extra(self, name: str) -> bool:
        return getattr(type(self), name, None) is not getattr(Stateful, name)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if self._has_extra("get_extra_state"):
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """All parameters and persistent buffers, by dotted name.

        Parameters
        ----------
        destination : dict, optional
            Where to put them; a new ``OrderedDict`` when left out.
        prefix : str
            Goes before every name.
        keep_vars : bool
            Keep the tensors attached to autograd.

        Returns
        -------
        OrderedDict
            Tensors that share memory with the module.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> list(nn.Sequential(nn.Linear(3, 2)).state_dict())
        ['0.weight', '0.bias']
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead.",
                FutureWarning,
                stacklevel=2,
            )
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars
                )
        for hook in self._state_dict_hooks.values():
            changed = hook(self, destination, prefix, local_metadata)
            if getattr(hook, "_from_public_api", False):
                if changed is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif changed is not None:
                destination = changed
        return destination

    def _load_tensor(self, key: str, param: Any, value: Any, assign: bool) -> str | None:
        """Copy or assign one entry; returns what is wrong with it, if anything."""
        if not isinstance(value, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or '
                f"Tensor-like object from checkpoint but received {type(value)}"
            )
        # Checkpoints of the oldest kind hold 0-d values as tensors of one element.
        if not is_lazy(param) and param.dim() == 0 and value.dim() == 1 and value.shape[0] == 1:
            value = value[0]
        if not is_lazy(param) and tuple(value.shape) != tuple(param.shape):
            return (
                f"size mismatch for {key}: copying a param with shape {value.shape} from "
                f"checkpoint, the shape in current model is {param.shape}."
            )
        if param.is_meta and not value.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                "parameter in the current model, which is a no-op. (Did you mean to pass "
                "`assign=True` to assign items in the state dictionary to their corresponding "
                "key in the module instead of copying them in place?)",
                stacklevel=2,
            )
        try:
            with pt.no_grad():
                if assign:
                    if isinstance(param, Parameter) and not isinstance(value, Parameter):
                        value = Parameter(value, requires_grad=param.requires_grad)
                    elif isinstance(param, Parameter):
                        value.requires_grad_(param.requires_grad)
                    setattr(self, key.rpartition(".")[2], value)
                else:
                    param.copy_(value)
        except Exception as error:
            action = "assigning" if assign else "copying"
            return (
                f'While {action} the parameter named "{key}", whose dimensions in the model are '
                f"{param.size()} and whose dimensions in the checkpoint are {value.size()}, "
                f"an exception occurred : {error.args}."
            )
        return None

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        for hook in self._load_state_dict_pre_hooks.values():
            hook(
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        assign = local_metadata.get("assign_to_params_buffers", False)
        own: dict[str, Any] = dict(self._parameters)
        for name, buffer in self._buffers.items():
            if name not in self._non_persistent_buffers_set:
                own[name] = buffer
        for name, param in own.items():
            key = prefix + name
            if param is None:
                continue
            if key in state_dict:
                wrong = self._load_tensor(key, param, state_dict[key], assign)
                if wrong is not None:
                    error_msgs.append(wrong)
            elif strict:
                missing_keys.append(key)
        extra = prefix + EXTRA_STATE
        if self._has_extra("set_extra_state"):
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            known = {name for name, param in own.items() if param is not None}
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    name, dot, _ = key[len(prefix) :].partition(".")
                    if name not in self._modules if dot else name not in known:
                        unexpected_keys.append(key)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Copy the values of ``state_dict`` into this module and all below it.

        Parameters
        ----------
        state_dict : dict
            What ``state_dict()`` of such a module returned.
        strict : bool, default True
            Raise when the names do not match exactly.
        assign : bool, default False
            Take the tensors themselves instead of copying their values.

        Returns
        -------
        NamedTuple
            ``missing_keys`` and ``unexpected_keys``.

        Raises
        ------
        RuntimeError
            Names (when strict) or shapes do not match.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> from pytensorlib import nn
        >>> net = nn.Linear(3, 2)
        >>> net.load_state_dict(nn.Linear(3, 2).state_dict())
        <All keys matched successfully>
        >>> net.load_state_dict({"weight": torch.zeros(2, 3)}, strict=False)
        _IncompatibleKeys(missing_keys=['bias'], unexpected_keys=[])
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        entries = OrderedDict(state_dict)
        if metadata is not None:
            entries._metadata = metadata  # type: ignore[attr-defined]

        _load(self, entries, "", metadata, assign, (missing, unexpected, errors))
        if strict:
            for label, keys in (("Unexpected", unexpected), ("Missing", missing)):
                if keys:
                    names = ", ".join(f'"{k}"' for k in keys)
                    errors.insert(0, f"{label} key(s) in state_dict: {names}. ")
            if advice := about_keys(state_dict, missing, unexpected):
                errors.append(advice)
        if errors:
            text = "\n\t".join(errors)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{text}"
            )
        return _IncompatibleKeys(missing, unexpected)


def _load(
    module: Any,
    local: Any,
    prefix: str,
    metadata: Any,
    assign: bool,
    notes: tuple[list[str], list[str], list[str]],
) -> None:
    """Load a module and those below it; `notes` are names missing and unexpected, and errors."""
    found = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        found["assign_to_params_buffers"] = assign
    module._load_from_state_dict(local, prefix, found, True, *notes)
    for name, child in module._modules.items():
        if child is not None:
            inner = prefix + name + "."
            below = {k: v for k, v in local.items() if k.startswith(inner)}
            _load(child, below, inner, metadata, assign, notes)
    keys = _IncompatibleKeys(notes[0], notes[1])
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to "
                "return new values, if incompatible_keys need to be modified, it should be done "
                "inplace."
            )


class _WrappedHook:
    """A load hook that may take the module first; a class so that it can be pickled."""

    def __init__(self, hook: Callable, module: Any = None) -> None:
        self.hook = hook
        self.with_module = module is not None
        if self.with_module:
            # The module owns the hook, which must not keep it.
            self.module = weakref.ref(module)

    def __call__(self, *args: Any) -> Any:
        if not self.with_module:
            return self.hook(*args)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hook, self.with_module = state["hook"], state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])


def _add(hooks: OrderedDict, hook: Callable) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle
