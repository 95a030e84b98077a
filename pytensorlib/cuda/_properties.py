"""The result of `torch.cuda.get_device_properties`."""

from __future__ import annotations

from typing import NamedTuple

__all__: list[str] = []


class _CudaDeviceProperties(NamedTuple):
    """The properties of a GPU; those that wgpu does not report are 0."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    is_integrated: bool
    is_multi_gpu_board: bool
    max_threads_per_block: int
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    warp_size: int
    L2_cache_size: int
    clock_rate: int
    memory_clock_rate: int
    memory_bus_width: int
    pci_bus_id: int
    pci_device_id: int
    pci_domain_id: int
    uuid: str
    gcnArchName: str  # noqa: N815  (PyTorch's)
    backend: str
    driver: str

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name={self.name!r}, major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, "
            f"multi_processor_count={self.multi_processor_count}, backend={self.backend!r}, "
            f"driver={self.driver!r})"
        )
