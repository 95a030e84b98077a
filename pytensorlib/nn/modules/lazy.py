"""Layers that learn their input's size from the first input."""

from __future__ import annotations

from typing import Any, Protocol

from ..parameter import is_lazy


class LazyModuleMixin:
    """Completes a module at its first call, then turns it into ``cls_to_become``.

    A subclass overrides ``initialize_parameters``, which sees the first call's arguments.
    """

    cls_to_become: Any = None
    # Module gives these.
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own: Any = self
        self._load_hook = own._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = own.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        tensors = {**self._parameters, **self._buffers}
        hidden = self._non_persistent_buffers_set  # type: ignore[attr-defined]
        for name, value in tensors.items():
            if value is not None and name not in hidden:
                keep = is_lazy(value) or keep_vars
                destination[prefix + name] = value if keep else value.detach()

    def _lazy_load_hook(self, state_dict: Any, prefix: str, *args: Any) -> None:
        for name, value in {**self._parameters, **self._buffers}.items():
            loaded = state_dict.get(prefix + name)
            if value is not None and loaded is not None and is_lazy(value) and not is_lazy(loaded):
                value.materialize(loaded.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give every parameter its shape, from the arguments of the first call."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether some parameter or buffer still waits for its shape."""
        return any(is_lazy(t) for t in (*self._parameters.values(), *self._buffers.values()))

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(
                f"module {type(self).__name__} has not been fully initialized by its first call"
            )
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become


class _LazyProtocol(Protocol):
    """The attributes of a lazy module, for type hints."""

    def has_uninitialized_params(self) -> bool: ...

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None: ...
