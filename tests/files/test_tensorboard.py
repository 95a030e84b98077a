"""Logs for TensorBoard: by tensorboardX where it is, else an error that says so."""

import importlib.util

import pytest

import pytensorlib as torch


@pytest.mark.skipif(importlib.util.find_spec("tensorboardX") is None, reason="no tensorboardX")
def test_writer_writes_numbers(tmp_path):
    from pytensorlib.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", torch.tensor(0.5), 1)
        with pytest.raises(NotImplementedError, match="eagerly"):
            writer.add_graph(torch.nn.Linear(1, 1))
    assert any(b"loss" in path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.skipif(importlib.util.find_spec("tensorboardX") is not None, reason="tensorboardX")
def test_missing_package_is_named():
    from pytensorlib.utils.tensorboard import SummaryWriter

    with pytest.raises(ImportError, match="pip install tensorboardX"):
        SummaryWriter()
