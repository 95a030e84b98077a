"""The protocol of objects that have a state to save."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

__all__ = ["Stateful"]


@runtime_checkable
class Stateful(Protocol):
    """An object that is asked for its state, and gets it back.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.checkpoint.stateful import Stateful
    >>> isinstance(torch.nn.Linear(1, 1), Stateful)
    True
    """

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state.

        Parameters
        ----------
        state_dict : dict
            What `state_dict` returned.
        """
