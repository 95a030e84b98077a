"""Streams and events of a GPU, whose one queue does everything in the order of the calls."""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

from .. import _C, _gpu
from .._absent.table import NO_CUDA

__all__ = ["Event", "Stream"]

# As PyTorch numbers kinds of devices.
_KINDS = {"cpu": 0, "cuda": 1, "xpu": 12, "mps": 13, "wgpu": 20}
_numbers = itertools.count(1)


class _Here(threading.local):
    """The streams that are current on a thread, by the number of the GPU."""

    def __init__(self) -> None:
        self.current: dict[int, Stream] = {}


_here = _Here()


def _device(device: Any, what: str) -> Any:
    """Return the device that is meant, with its number if it is a GPU."""
    if device is None:
        if not _C._wgpu_available():
            raise RuntimeError(
                f"{what}: there is no accelerator, and {NO_CUDA} Name a device, or ask "
                "torch.accelerator.is_available() first"
            )
        device = _gpu.name()
    elif isinstance(device, int):
        device = f"{_gpu.name()}:{device}"
    device = _C.device(device)
    if device._is_gpu and device.index is None:
        return _C.device(f"{device.type}:{_C._wgpu_current()}")
    return device


class Stream:
    """A queue of a GPU's work.

    A GPU has one queue here, which does everything in the order in which it was asked: all streams
    of it are that one. So they may be used as in any program for several, and never wait in vain.

    Parameters
    ----------
    device : device, str or int, optional
        The current GPU where it is left out; the CPU does everything at once.
    stream_id, device_index, device_type : int, optional
        Another stream's, in the place of a device.
    priority : int, default 0
        Not used.

    Raises
    ------
    RuntimeError
        There is no such device.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> stream = torch.Stream("cpu")
    >>> stream.query()
    True
    """

    def __init__(
        self,
        device: Any = None,
        *,
        priority: int = 0,
        stream_id: int | None = None,
        device_index: int | None = None,
        device_type: int | None = None,
    ) -> None:
        if device is None and device_type is not None:
            device = "cpu" if device_type == _KINDS["cpu"] else device_index
        self.device = _device(device, "Stream")
        if not (self.device._is_gpu or self.device.type == "cpu"):
            raise RuntimeError(f"Stream: {self.device.type} has no streams")
        if self.device._is_gpu and self.device.index >= _C._wgpu_count():
            raise RuntimeError(
                f"Stream: there is no {self.device}; torch.accelerator.device_count() is "
                f"{_C._wgpu_count()}"
            )
        if stream_id is None:
            stream_id = next(_numbers) if self.device._is_gpu else 0
        self.stream_id, self.priority = stream_id, priority

    @property
    def device_index(self) -> int:
        """The number of the GPU; -1 of the CPU."""
        return -1 if self.device.index is None else self.device.index

    @property
    def device_type(self) -> int:
        """The kind of device, as PyTorch numbers them: 0 is the CPU."""
        return _KINDS[self.device.type]

    @property
    def native_handle(self) -> int:
        """Raises: wgpu does not hand the driver's queue out."""
        raise NotImplementedError(
            "Stream.native_handle: wgpu does not hand out the driver's queue; "
            "torch.wgpu.to_buffer copies a tensor for other libraries"
        )

    def is_capturing(self) -> bool:
        """Return False: `torch.graph` records kernels, not streams."""
        return False

    def query(self) -> bool:
        """Return whether all that was asked for is done."""
        if not self.device._is_gpu:
            return True
        event = self._new_event(False)
        # Of a queue with nothing left the driver tells a moment after it was asked.
        for _ in range(20):
            if event.has_passed():
                return True
            time.sleep(1e-4)
        return False

    def synchronize(self) -> None:
        """Wait until all that was asked for is done."""
        if self.device._is_gpu:
            _C._wgpu_synchronize(self.device.index)

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event behind all that was asked for.

        Parameters
        ----------
        event : Event, optional
            A new one where it is left out.
        """
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let what comes wait for an event.

        Parameters
        ----------
        event : Event
            One of this GPU is behind what comes anyway; for another one's this waits now.
        """
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let what comes wait for what was asked of another stream.

        Parameters
        ----------
        stream : Stream
            One of this GPU is behind what comes anyway; for another one's this waits now.
        """
        if stream.device != self.device:
            stream.synchronize()

    def _new_event(self, timed: bool) -> Any:
        return _C._Event(self.device.index, timed)

    def __enter__(self) -> Stream:
        if self.device._is_gpu:
            before = (_C._wgpu_current(), _here.current.get(self.device.index))
            self.__dict__.setdefault("_before", []).append(before)
            _C._wgpu_set_current(self.device.index)
            _here.current[self.device.index] = self
        return self

    def __exit__(self, *exc: Any) -> None:
        if self.device._is_gpu:
            gpu, stream = self.__dict__["_before"].pop()
            _C._wgpu_set_current(gpu)
            if stream is None:
                _here.current.pop(self.device.index, None)
            else:
                _here.current[self.device.index] = stream

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return (self.device, self.stream_id) == (other.device, other.stream_id)

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_index, self.stream_id))

    def __repr__(self) -> str:
        return (
            f"torch.Stream device_type={self.device.type}, device_index={self.device_index}, "
            f"stream_id={self.stream_id}"
        )


def current(device: Any, what: str) -> Stream:
    """Return the stream that is current on a GPU; the first is number 0."""
    device = _device(device, what)
    if not device._is_gpu:
        raise ValueError(f"{what}: expected a GPU, such as {_gpu.name()}:0, but got: {device}")
    return _here.current.get(device.index) or Stream(device, stream_id=0)


def set_current(stream: Stream) -> None:
    """Make a stream, and its GPU, the current one on this thread."""
    if not stream.device._is_gpu:
        raise ValueError(f"set_stream: expected a stream of a GPU, but got one of {stream.device}")
    _C._wgpu_set_current(stream.device.index)
    _here.current[stream.device.index] = stream


class Event:
    """A point in the work of a GPU: whether it was reached, and when.

    Parameters
    ----------
    device : device, str or int, optional
        The current GPU where it is left out.
    enable_timing : bool, default False
        Whether it has a time, by the GPU's own clock.
    blocking, interprocess : bool, default False
        Not used.

    Raises
    ------
    RuntimeError
        There is no such device.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.accelerator.is_available():
    ...     start, end = (torch.Event(enable_timing=True) for _ in range(2))
    ...     start.record()
    ...     y = torch.ones(1000, device="wgpu") * 2
    ...     end.record()
    ...     end.synchronize()
    ...     milliseconds = start.elapsed_time(end)
    """

    def __init__(
        self,
        device: Any = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        self.device = _device(device, "Event")
        self._timed, self._recorded = bool(enable_timing), None

    @property
    def event_id(self) -> int:
        """A number of its own once it was recorded; 0 before."""
        return 0 if self._recorded is None else id(self)

    def record(self, stream: Stream | None = None) -> None:
        """Note that all that was asked for comes before this.

        Parameters
        ----------
        stream : Stream, optional
            Of the event's GPU.

        Raises
        ------
        RuntimeError
            The device has no events; the stream is another one's; or the event is timed and the
            adapter has no timestamps.
        """
        if not self.device._is_gpu:
            raise RuntimeError(f"{self.device.type} backend doesn't support events.")
        if stream is not None and stream.device != self.device:
            raise RuntimeError(
                f"Event device {self.device} does not match recording stream's device "
                f"{stream.device}. Make the event with device={str(stream.device)!r}."
            )
        self._recorded = _C._Event(self.device.index, self._timed)

    def query(self) -> bool:
        """Return whether all that it was recorded behind is done; True before it was recorded."""
        return self._recorded is None or self._recorded.has_passed()

    def synchronize(self) -> None:
        """Wait until all that it was recorded behind is done."""
        if self._recorded is not None:
            self._recorded.wait()

    def wait(self, stream: Stream | None = None) -> None:
        """Let what is asked of a stream from now on come behind this.

        Parameters
        ----------
        stream : Stream, optional
            The current one where it is left out. Of another GPU than the event's, this waits now.
        """
        index = _C._wgpu_current() if stream is None else stream.device.index
        if self._recorded is not None and self._recorded.index != index:
            self._recorded.wait()

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this event to another one, by the GPU's clock.

        Parameters
        ----------
        end_event : Event
            Recorded later, on the same GPU.

        Raises
        ------
        RuntimeError
            One of them has no time, was not recorded, or was not reached yet.
        ValueError
            They are of two GPUs.
        """
        both = (self, end_event)
        if not all(event._timed for event in both):
            raise RuntimeError(
                "Both events must be created with argument 'enable_timing=True' to measure time."
            )
        if any(event._recorded is None for event in both):
            raise RuntimeError(
                "Both events must be recorded before calculating elapsed time: call record() on "
                "each."
            )
        if not all(event.query() for event in both):
            raise RuntimeError(
                "Both events must be completed before calculating elapsed time: call synchronize() "
                "on the later one first."
            )
        return self._recorded.milliseconds_to(end_event._recorded)  # type: ignore[attr-defined]

    def ipc_handle(self) -> bytes:
        """Raise: events are of one process."""
        raise NotImplementedError(
            "Event.ipc_handle: events are of one process here; torch.distributed waits for others"
        )

    @classmethod
    def from_ipc_handle(cls, device: Any, ipc_handle: bytes) -> Event:
        """Raise: events are of one process.

        Parameters
        ----------
        device : device
            Not used.
        ipc_handle : bytes
            Not used.
        """
        raise NotImplementedError(
            "Event.from_ipc_handle: events are of one process here; torch.distributed waits for "
            "others"
        )

    def __repr__(self) -> str:
        index = -1 if self.device.index is None else self.device.index
        return (
            f"torch.Event device_type={self.device.type}, device_index={index}, "
            f"event_flag={int(self._timed)}, event_id={self.event_id}"
        )
