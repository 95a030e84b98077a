"""What a wheel has to do after `pip install` on any system, in seconds, without other packages.

``python smoke.py [DEVICE]`` prints a line for each check; the exit status is 1 where one failed.
Where ``SMOKE_FROM`` names a folder, what is imported must lie in it.
"""

import multiprocessing
import os
import pickle
import sys
import tempfile
import traceback
import warnings

import numpy as np

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.utils.data import DataLoader, TensorDataset

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cpu"
# What PyTorch 2.13 gives for this seed on the CPU.
UNIFORM = [0.49625658988952637, 0.7682217955589294, 0.08847743272781372]


def from_where():
    place = os.path.dirname(torch.__file__)
    assert place.startswith(os.environ.get("SMOKE_FROM", "")), place
    return torch.__version__, sys.version.split()[0], sys.platform, torch.get_num_threads()


def products():
    assert (torch.ones(300, 200) @ torch.ones(200, 100)).sum().item() == 300 * 200 * 100
    x = torch.arange(12.0, device=DEVICE).reshape(3, 4)
    # By hand: NumPy's own product may be wrong where an emulator runs it.
    assert (x @ x.T).tolist() == [[14, 38, 62], [38, 126, 214], [62, 214, 366]]


def random_numbers():
    torch.manual_seed(0)
    assert torch.rand(3).tolist() == UNIFORM


def numpy_shares():
    array = np.zeros(2, np.float32)
    torch.from_numpy(array).add_(1)
    assert array.tolist() == [1, 1]


def second_derivative():
    x = torch.tensor(2.0, requires_grad=True, device=DEVICE)
    (g,) = torch.autograd.grad(x**3, x, create_graph=True)
    assert torch.autograd.grad(g, x)[0].item() == 12


def singular_values():
    x = torch.tensor([[3.0, 0.0], [4.0, 5.0]], dtype=torch.float64)
    # The roots of 45 and of 5.
    np.testing.assert_allclose(torch.linalg.svdvals(x).numpy(), [45**0.5, 5**0.5], rtol=1e-14)


def training():
    torch.manual_seed(0)
    x = torch.randn(256, 1, 8, 8)
    y = (x.mean((1, 2, 3)) > 0).long()
    layers = [nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    net = nn.Sequential(*layers, nn.Linear(72, 2)).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    losses = []
    for _ in range(6):
        for a, b in DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True):
            loss = nn.functional.cross_entropy(net(a.to(DEVICE)), b.to(DEVICE))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(round(loss.item(), 4))
    assert losses[-1] < 0.6 * losses[0], losses
    return losses


def files():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.pt")
        for n in (3, 1 << 20):
            torch.save({"w": torch.arange(n)}, path)
            assert torch.load(path)["w"].sum() == n * (n - 1) // 2
        mapped = torch.load(path, mmap=True)["w"]
        assert mapped[5] == 5
        del mapped
        torch.save({"w": torch.arange(5)}, path)
        assert os.listdir(folder) == ["m.pt"]


def maps_of_files():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "raw")
        x = torch.from_file(path, shared=True, size=4, dtype=torch.float32)
        x.fill_(2)
        del x
        assert np.fromfile(path, np.float32).tolist() == [2] * 4


def pickles():
    assert pickle.loads(pickle.dumps(torch.ones(2))).tolist() == [1, 1]


def compiled():
    f = torch.compile(lambda a: a * 2 + 1)
    assert [f(torch.ones(2, device=DEVICE)).tolist() for _ in range(4)] == [[3, 3]] * 4


def workers():
    data = TensorDataset(torch.arange(8.0))
    context = multiprocessing.get_context("spawn")
    batches = DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context=context)
    assert [batch[0].sum().item() for batch in batches] == [6, 22]


def _double(queue, x):
    x.mul_(2)
    queue.put((x.sum().item(), torch.arange(3.0)))


def shared_memory():
    x = torch.ones(3)
    x.share_memory_()
    context = torch.multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_double, args=(queue, x))
    process.start()
    # An emulator may take minutes to start a process.
    told, sent = queue.get(timeout=900)
    process.join()
    assert told == 6 and x.tolist() == [2, 2, 2] and sent.tolist() == [0, 1, 2]


def errors():
    text = ""
    try:
        torch.ones(2, 3, device=DEVICE) @ torch.ones(4, 5, device=DEVICE)
    except RuntimeError as error:
        text = str(error)
    assert "cannot be multiplied (2x3 and 4x5)" in text, text


CHECKS = [from_where, products, random_numbers, numpy_shares, second_derivative, singular_values]
CHECKS += [training, files, maps_of_files, pickles, compiled, workers, shared_memory, errors]


def main():
    """Run the checks; returns the exit status."""
    warnings.simplefilter("ignore")
    failed = 0
    for check in CHECKS:
        name = check.__name__.replace("_", " ")
        try:
            found = check()
            print(f"ok   {name}" + (f": {found}" if found is not None else ""), flush=True)
        except Exception as error:
            failed += 1
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{os.path.basename(last.filename)}:{last.lineno}"
            print(f"FAIL {name}: {type(error).__name__}: {error} ({where})", flush=True)
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
