"""A device in ``with`` is where factories make tensors."""

import pytest

import pytensorlib as torch


def test_factories_make_tensors_on_the_device_of_the_block() -> None:
    before = torch.get_default_device()
    with torch.device("cpu") as device:
        assert device == torch.device("cpu") == torch.get_default_device()
        with pytest.raises(KeyError), torch.device("cpu"):
            raise KeyError
        assert torch.zeros(2).device == device
    assert torch.get_default_device() == before


@pytest.mark.skipif(not torch.wgpu.is_available(), reason="no GPU")
def test_blocks_of_the_gpu() -> None:
    with torch.device("wgpu"):
        assert torch.zeros(2).device.type == "wgpu" == torch.nn.Linear(2, 2).weight.device.type
        assert torch.zeros(2, device="cpu").device.type == "cpu"
        with torch.device("cpu"):
            assert torch.rand(2).device.type == "cpu"
        assert torch.arange(2).device.type == "wgpu"
    assert torch.zeros(2).device.type == "cpu"


def test_a_device_that_is_not_here_says_so_where_the_block_begins() -> None:
    before = torch.get_default_device()
    with pytest.raises((RuntimeError, AssertionError, NotImplementedError)), torch.device("cuda"):
        torch.zeros(2)
    assert torch.get_default_device() == before
