"""Copies of the modules of `torch.cuda` for PyTorch's other kinds of devices.

What they define asks ``GPU`` of their package's ``_kind`` which one that is.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any, cast

__all__ = ["again"]


def again(space: dict[str, Any], name: str, **renamed: str) -> None:
    """Run a module of `torch.cuda` in the namespace of another, in another package.

    Parameters
    ----------
    space : dict
        The namespace.
    name : str
        The module, within `torch.cuda`.
    **renamed : str
        What names of it are called there.
    """
    from ..cuda import _kind

    module = importlib.import_module(f"{_kind.__package__}.{name}")
    spec = cast(Any, module.__spec__)
    exec(spec.loader.get_code(spec.name), space)
    kind = space["GPU"].name
    for old, new in renamed.items():
        value = space[new] = space.pop(old)
        value.__name__ = value.__qualname__ = new
        space["__all__"] = [new if n == old else n for n in space["__all__"]]

    def tell(value: Any) -> None:
        doc = getattr(value, "__doc__", None)
        if isinstance(doc, str):
            doc = doc.replace("torch.cuda", f"torch.{kind}").replace('"cuda"', f'"{kind}"')
            for old, new in renamed.items():
                doc = doc.replace(old, new)
            value.__doc__ = doc
        if isinstance(value, type):
            for member in vars(value).values():
                if inspect.isfunction(member):
                    tell(member)

    for value in list(space.values()):
        if getattr(value, "__module__", None) == space["__name__"]:
            tell(value)
