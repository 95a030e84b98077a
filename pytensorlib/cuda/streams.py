"""Streams and events of GPUs that answer as "cuda": a GPU has one queue, which all streams are."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._absent.modules import refusing
from .._gpu import streams as _streams
from ._kind import GPU

__all__ = ["Event", "ExternalStream", "Stream"]

_NO_HANDLES = (
    "wgpu does not take queues of other libraries; torch.cuda.Stream() makes one, and "
    "torch.wgpu.from_buffer takes their memory."
)


class Stream(_streams.Stream):
    """A queue of a GPU's work; all streams of a GPU are its one queue.

    Parameters
    ----------
    device : device, str or int, optional
        The current GPU where it is left out.
    priority : int, default 0
        Not used.
    **kwargs
        As of `torch.Stream`.

    Raises
    ------
    RuntimeError
        There is no such GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     stream = torch.cuda.Stream()
    ...     with torch.cuda.stream(stream):
    ...         y = torch.ones(2, device="cuda") * 2
    ...     torch.cuda.current_stream().wait_stream(stream)
    """

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        if kwargs.get("device_index") is None:
            device = GPU.index(device, "Stream")
        super().__init__(device, priority=priority, **kwargs)

    @property
    def cuda_stream(self) -> int:
        """A number that tells streams apart; 0 is the first. It is no handle of a driver's."""
        return self.stream_id

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Return the least and the greatest priority: there is one."""
        return (0, 0)

    def is_capturing(self) -> bool:
        """Return whether this thread captures a graph."""
        from .graphs import is_current_stream_capturing

        return is_current_stream_capturing()

    def record_event(self, event: Any = None) -> Any:
        """Record an event behind all that was asked for.

        Parameters
        ----------
        event : Event, optional
            A new one where it is left out.
        """
        event = Event() if event is None else event
        event.record(self)
        return event

    def __repr__(self) -> str:
        return (
            f"<torch.{GPU.name}.Stream device={self.device} {GPU.name}_stream={self.stream_id:#x}>"
        )


ExternalStream = refusing("ExternalStream", __name__, _NO_HANDLES, (Stream,))


class Event(_streams.Event):
    """A point in the work of a GPU: whether it was reached, and when.

    Parameters
    ----------
    enable_timing : bool, default False
        Whether it has a time, by the GPU's own clock.
    blocking, interprocess, external : bool, default False
        Not used.

    Raises
    ------
    NotImplementedError
        GPUs do not answer as this kind.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    ...     start.record()
    ...     y = torch.ones(1000, device="cuda") * 2
    ...     end.record()
    ...     torch.cuda.synchronize()
    ...     milliseconds = start.elapsed_time(end)
    """

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> None:
        GPU.need_name("Event")
        # On the GPU whose stream it is first recorded in.
        self.device = None
        self._timed, self._recorded = bool(enable_timing), None

    def record(self, stream: Any = None) -> None:
        """Note that all that was asked for comes before this.

        Parameters
        ----------
        stream : Stream, optional
            The current one where it is left out.

        Raises
        ------
        RuntimeError
            There is no GPU, or the event is another one's.
        """
        if self.device is None:
            index = GPU.index(None if stream is None else stream.device, "Event.record")
            self.device = _C.device(GPU.name, index)
        super().record(stream)

    @property
    def cuda_event(self) -> int:
        """A number of its own once it was recorded; 0 before."""
        return self.event_id

    def __repr__(self) -> str:
        if self._recorded is None:
            return f"<torch.{GPU.name}.Event uninitialized>"
        return f"<torch.{GPU.name}.Event {self.event_id:#x}>"
