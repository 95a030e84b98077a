"""`torch.distributed.checkpoint` in one process; with several, `ranks/sharded.py` has it."""

import pickle
from pathlib import Path

import pytest

import pytensorlib as torch
from pytensorlib.distributed import checkpoint

# Written by PyTorch 2.13: {"model": {"w": arange(6).reshape(2, 3), "b": [1, 2], "h": 1.5 of
# bfloat16}, "epoch": 3, "list": [{"lr": 0.5, "params": [0, 1]}]}.
WRITTEN = Path(__file__).parents[1] / "data/pytorch_checkpoint"


def test_checkpoint_that_pytorch_wrote_is_read() -> None:
    model = {
        "w": torch.zeros(3, 2).t(),
        "b": torch.zeros(2, dtype=torch.int64),
        "h": torch.zeros((), dtype=torch.bfloat16),
    }
    state = {"model": model, "epoch": 0, "list": [{"lr": 0.0, "params": []}]}
    checkpoint.load(state, checkpoint_id=WRITTEN)
    assert model["w"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert model["b"].tolist() == [1, 2] and model["h"].item() == 1.5
    assert state["epoch"] == 3 and state["list"] == [{"lr": 0.5, "params": [0, 1]}]


def test_index_is_pytorchs(tmp_path: Path) -> None:
    checkpoint.save({"model": {"w": torch.ones(2, 3)}, "epoch": 3}, checkpoint_id=tmp_path)
    ours = checkpoint.FileSystemReader(tmp_path).read_metadata()
    known = checkpoint.FileSystemReader(WRITTEN).read_metadata()
    for name, path in (("model.w", ("model", "w")), ("epoch", ("epoch",))):
        assert ours.state_dict_metadata[name] == known.state_dict_metadata[name]
        assert ours.planner_data[name] == known.planner_data[name] == path
    assert set(ours.storage_data) <= set(known.storage_data)
    assert ours.version == known.version
    assert b"pytensorlib" not in (tmp_path / ".metadata").read_bytes()


def test_module_and_optimizer_are_asked_and_told(tmp_path: Path) -> None:
    def made() -> dict:
        net = torch.nn.Linear(2, 1)
        adam = torch.optim.Adam(net.parameters(), lr=0.1)
        net(torch.ones(1, 2)).sum().backward()
        adam.step()
        return {"net": net, "adam": adam}

    saved, loaded = made(), made()
    checkpoint.save(saved, checkpoint_id=tmp_path)
    saved["adam"].param_groups[0]["lr"] = 0.3
    checkpoint.save(saved, checkpoint_id=tmp_path)
    checkpoint.load(loaded, checkpoint_id=tmp_path)
    assert torch.equal(loaded["net"].weight, saved["net"].weight)
    assert loaded["adam"].param_groups[0]["lr"] == 0.3


class Harmful:
    def __reduce__(self) -> tuple:
        return print, ("harm",)


def test_damaged_and_harmful_indices_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = checkpoint.CheckpointException
    with pytest.raises(error, match="no checkpoint in"):
        checkpoint.load({"a": 1}, checkpoint_id=tmp_path / "none")
    index = tmp_path / ".metadata"
    for data, text in (
        (pickle.dumps(Harmful()), "names builtins.print"),
        (pickle.dumps({}), "holds no index"),
        (WRITTEN.joinpath(".metadata").read_bytes()[:500], "damaged"),
    ):
        index.write_bytes(data)
        with pytest.raises(error, match=text):
            checkpoint.load({"a": 1}, checkpoint_id=tmp_path)
    assert "harm" not in capsys.readouterr().out
    data = WRITTEN.joinpath(".metadata").read_bytes()
    index.write_bytes(data.replace(b"__0_0.distcp", b"../../../etc"))
    with pytest.raises(error, match="outside of"):
        checkpoint.load({"epoch": 1}, checkpoint_id=tmp_path)
