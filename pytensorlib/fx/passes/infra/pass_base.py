"""A pass over a graph module."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """A module after a pass, and whether the pass changed it."""

    graph_module: Any
    modified: bool


class PassBase(abc.ABC):
    """A pass: a subclass defines `call`, and may check before and after.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.infra.pass_base import PassBase, PassResult
    >>> class Nothing(PassBase):
    ...     def call(self, graph_module):
    ...         return PassResult(graph_module, False)
    >>> Nothing()(torch.fx.symbolic_trace(lambda x: x)).modified
    False
    """

    def __call__(self, graph_module: Any) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: Any) -> PassResult | None:
        """Change a module.

        Parameters
        ----------
        graph_module : GraphModule
            The module.

        Returns
        -------
        PassResult
            It, and whether it was changed.
        """

    def requires(self, graph_module: Any) -> None:  # noqa: B027
        """Check a module before the pass."""

    def ensures(self, graph_module: Any) -> None:  # noqa: B027
        """Check a module after the pass."""
