"""``DataParallel``: a module on several devices, each with its part of the batch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ... import wgpu
from ..module import Module
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, place, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


def _tensors(module: Any) -> Any:
    return itertools.chain(module.parameters(), module.buffers())


def _devices(module: Any) -> list[Any]:
    """Return the GPUs there are, for a module that is on one."""
    first = next(_tensors(module), None)
    on_gpu = first is not None and first._is_gpu
    return [place(i) for i in range(wgpu.device_count())] if on_gpu else []


class DataParallel(Module):
    """Runs a module on several devices, each with its part of the batch.

    With one device it calls the module itself, with what it was given there; with none, as on the
    CPU, as it was given.

    Parameters
    ----------
    module : Module
        On the first device.
    device_ids : sequence of device or int, optional
        A number means a GPU; by default all GPUs for a module on one, none for one on the CPU.
    output_device : device or int, optional
        Where results are joined; by default the first device.
    dim : int, default 0
        The dimension of the batch.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> net = torch.nn.DataParallel(torch.nn.Linear(3, 2))
    >>> net(torch.ones(4, 3)).shape
    torch.Size([4, 2])
    >>> [name for name, _ in net.named_parameters()]
    ['module.weight', 'module.bias']
    """

    def __init__(
        self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module
        ids = _devices(module) if device_ids is None else [place(d) for d in device_ids]
        self.device_ids = ids
        if ids:
            self.dim = dim
            self.output_device = ids[0] if output_device is None else place(output_device)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module on every part and join the results."""
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        home = self.device_ids[0]
        for tensor in _tensors(self.module):
            if tensor.device != home:
                raise RuntimeError(
                    f"module must have its parameters and buffers on device {home} "
                    f"(device_ids[0]) but found one of them on device: {tensor.device}"
                )
        args, named = scatter_kwargs(inputs, kwargs, self.device_ids, self.dim)
        if not args:
            args, named = ((),), ({},)
        if len(args) == 1:
            return self.module(*args[0], **named[0])
        replicas = replicate(self.module, self.device_ids[: len(args)])
        outputs = parallel_apply(replicas, args, named)
        return gather(outputs, self.output_device, self.dim)


def data_parallel(
    module: Any,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Run a module on several devices, each with its part of the batch.

    Parameters
    ----------
    module : Module
        On the first device.
    inputs : Tensor or tuple
        Its arguments.
    device_ids : sequence of device or int, optional
        As of `DataParallel`.
    output_device : device or int, optional
        Where results are joined.
    dim : int, default 0
        The dimension of the batch.
    module_kwargs : dict, optional
        More arguments, by name.

    Returns
    -------
    object
        What the module returns, of the whole batch.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.tensor([-1.0, 1.0])
    >>> torch.nn.parallel.data_parallel(torch.nn.ReLU(), x, ["cpu", "cpu"])
    tensor([0., 1.])
    """
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    parallel = DataParallel(module, device_ids, output_device, dim)
    return parallel(*inputs, **(module_kwargs or {}))
