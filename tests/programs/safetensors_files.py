"""Weights written and read by safetensors, into tensors and into modules."""

import os
import tempfile
from pathlib import Path

import torch
from report import finish, report
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
tensors = {
    "float": torch.randn(5, 7),
    "half": torch.randn(9).half(),
    "bfloat": torch.randn(3, 3).bfloat16(),
    "long": torch.arange(6).reshape(2, 3),
    "bool": torch.tensor([True, False]),
    "empty": torch.zeros(0, 4),
    "scalar": torch.tensor(2.5),
}
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "x.safetensors")
    save_file(tensors, path, metadata={"made": "here"})
    report("bytes", list(Path(path).read_bytes()))
    back = load_file(path, device=device)
    for name, value in tensors.items():
        assert back[name].dtype == value.dtype and back[name].shape == value.shape, name
        assert torch.equal(back[name].cpu(), value), name
        report(name, back[name])
    with safe_open(path, framework="pt", device=device) as f:
        assert f.metadata() == {"made": "here"}
        report("part", f.get_slice("float")[1:3, 2:4])
        report("whole", f.get_tensor("half"))
    assert load(save(tensors))["long"].equal(tensors["long"])

    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 4))
    model[2].weight = nn.Parameter(model[0].weight.t().contiguous())
    tied = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
    tied["b"].weight = tied["a"].weight
    for module in (model, tied):
        module.to(device)
    for name, module in (("plain", model), ("tied", tied)):
        save_model(module, path)
        saved = [p.clone() for p in module.parameters()]
        for p in module.parameters():
            nn.init.zeros_(p)
        missing, unexpected = load_model(module, path)
        assert not missing and not unexpected
        assert all(torch.equal(a, b) for a, b in zip(saved, module.parameters()))
        report(name, torch.cat([p.flatten() for p in module.parameters()]))
finish()
