"""``Module`` under the path that PyTorch keeps it at."""

import sys
from collections.abc import Callable  # noqa: F401  (what the class's annotations name)
from types import ModuleType
from typing import Any

from ... import _alias
from .. import _hooks, module
from .._hooks import (
    RemovableHandle,
    register_module_backward_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from .._state_dict import EXTRA_STATE as _EXTRA_STATE_KEY_SUFFIX  # noqa: F401  (PyTorch's name)
from .._state_dict import _IncompatibleKeys, _WrappedHook
from ..module import (
    Module,
    register_module_buffer_registration_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)

__all__ = [
    "Module",
    "RemovableHandle",
    "_IncompatibleKeys",
    "_WrappedHook",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]
_alias.adopt(globals(), [name for name in __all__ if name != "RemovableHandle"])


class _Shared(ModuleType):
    """Gives the hooks of all modules PyTorch's private names, to be read and to be replaced."""

    _kept = {name: (_hooks, name) for name in vars(_hooks) if name.startswith("_global_")} | {
        f"_global_{kind}_registration_hooks": (module, f"_global_{kind}_hooks")
        for kind in ("parameter", "buffer", "module")
    }

    def __getattr__(self, name: str) -> Any:
        try:
            home, inside = self._kept[name]
        except KeyError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None
        return getattr(home, inside)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._kept:
            super().__setattr__(name, value)
            return
        setattr(*self._kept[name], value)
        _hooks.Hookable._hooked = True


sys.modules[__name__].__class__ = _Shared


def _addindent(s_: str, numSpaces: int) -> str:  # noqa: N803  (PyTorch's name)
    """Return a text whose lines but the first are moved to the right."""
    first, *rest = s_.split("\n")
    return "\n".join([first, *(" " * numSpaces + line for line in rest)])


def _forward_unimplemented(self: Any, *input: Any) -> None:
    """Raise: a module without a forward function is called."""
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )
