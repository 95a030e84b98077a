"""Memory and sizes that callers make up: an error or a right answer, never another's memory."""

import ctypes

import child
import numpy as np
import pytest

import pytensorlib as torch


class DLTensor(ctypes.Structure):
    """As in dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


def capsule(memory: np.ndarray, shape, strides=None, offset=0, /, **fields):
    """Return a capsule over float32 memory, and what it points to."""
    sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    steps = (ctypes.c_int64 * max(len(shape), 1))(*(strides or ()))
    t = DLTensor(
        memory.ctypes.data, (1, 0), len(shape), 2, 32, 1, ctypes.addressof(sizes),
        ctypes.addressof(steps) if strides else None, offset,
    )  # fmt: skip
    for name, value in fields.items():
        setattr(t, name, value)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    return new(ctypes.addressof(t), b"dltensor", None), (memory, sizes, steps, t)


def test_dlpack_reads_strides_and_odd_offsets():
    memory = np.arange(12, dtype=np.float32)
    for shape, strides, offset, want in [
        ((3, 2), None, 0, memory[:6].reshape(3, 2)),
        ((2, 3), (1, 2), 8, memory[2:8].reshape(3, 2).T),
        ((4,), (0,), 4, np.ones(4)),
        ((1, 2), (2**62, 1), 0, memory[:2].reshape(1, 2)),
        ((1, 2), (-(2**63), 1), 0, memory[:2].reshape(1, 2)),
        ((0, 2), (2**63 - 1, 2**63 - 1), 0, np.empty((0, 2))),
        ((2,), None, 2, np.frombuffer(memory.tobytes()[2:10], np.float32)),
    ]:
        box, _keep = capsule(memory, shape, strides, offset)
        t = torch.from_dlpack(box)
        np.testing.assert_array_equal(t.numpy(), want)
        np.testing.assert_array_equal((t + 1).numpy(), want.astype(np.float32) + 1)


@pytest.mark.parametrize(
    "bad",
    [
        {"ndim": -1}, {"ndim": -(2**31)}, {"shape": None}, {"data": None}, {"bits": 0},
        {"lanes": 2}, {"lanes": 0}, {"code": 9}, {"device": (2, 0)},
    ],
    ids=str,
)  # fmt: skip
def test_dlpack_that_describes_no_tensor_raises(bad):
    box, _keep = capsule(np.ones(12, np.float32), (3, 2), **bad)
    with pytest.raises(BufferError, match="from_dlpack"):
        torch.from_dlpack(box)


@pytest.mark.parametrize("shape", [(-1,), (2**62,), (2**40, 2**40), (2, 2**63 - 1)], ids=str)
def test_dlpack_of_impossible_sizes_raises(shape):
    box, _keep = capsule(np.ones(12, np.float32), shape)
    with pytest.raises((BufferError, RuntimeError)):
        torch.from_dlpack(box)


@pytest.mark.parametrize("stride", [2**31, 2**61, 2**62, 2**63 - 1])
def test_strides_that_are_never_applied_may_be_any_number(stride):
    x = torch.arange(4.0).as_strided((1, 2), (stride, 2))
    assert x.stride(0) == stride
    assert x.numpy().tolist() == x.tolist() == [[0.0, 2.0]]
    c = torch.complex(x, x + 1).as_strided((1, 2), (stride, 1))
    assert c.real.tolist() == [[0.0, 2.0]] and c.imag.sum() == 4 and c.sum().item() == 2 + 4j
    assert torch.view_as_real(c).tolist() == [[[0.0, 1.0], [2.0, 3.0]]]
    assert torch.tensor([1.0]).as_strided((0, 3), (stride, stride)).numpy().shape == (0, 3)
    assert (x + x).sum() == 4 and x.clone().sum() == 2 and (x @ x.T).item() == 4
    assert x.view(torch.int32).tolist() == [[0, 0x40000000]]


def test_module_lookup_keeps_a_table_that_takes_itself_away():
    class Table(dict):
        def __contains__(self, key):
            m.__dict__.pop("_parameters", None)
            return True

        def __getitem__(self, key):
            return super().__getitem__("kept") * 2

    for _ in range(100):
        m = torch.nn.Linear(1, 1)
        m.__dict__["_parameters"] = Table(kept=21)
        assert m.anything == 42


def test_module_call_keeps_a_function_that_is_taken_away():
    class Name(str):
        __slots__ = ()

        def __hash__(self):
            return hash("forward")

        def __eq__(self, other):
            vars(kind).get("forward") and delattr(kind, "forward")
            return False

    for i in range(100):
        kind = type(f"Layer{i}", (torch.nn.Module,), {})
        exec("def forward(self, x): return x + self.extra + 1", space := {})
        kind.forward = space.pop("forward")
        layer = kind()
        layer.extra = 0
        vars(layer)[Name("other")] = None
        assert layer(i) == i + 1 and "forward" not in vars(kind)


RACES = """
import threading, time
import pytensorlib as torch
F = torch.nn.functional
n = 200_000
x, idx = torch.randn(n), torch.arange(n) % 100
m, wide, plane = x.view(-1, 100), idx.view(-1, 100), x.view(1, -1, 100)
calls = [
    lambda: m.gather(1, wide), lambda: m.scatter(1, wide, m), lambda: m.scatter_add(1, wide, m),
    lambda: x[idx], lambda: x.index_put((idx,), x), lambda: x.index_add(0, idx, x),
    lambda: x.index_fill(0, idx, 1.0), lambda: x.index_reduce(0, idx, x, "amax"),
    lambda: x.take(idx), lambda: F.embedding(idx, m), lambda: F.embedding_bag(wide, m),
    lambda: F.max_unpool1d(plane, idx.view(plane.shape), 1), lambda: F.cross_entropy(m, idx[:2000]),
]
good, running = idx.clone().numpy(), True
def disturb():
    seen, step = idx.numpy(), 0
    while running:
        step += 1
        seen[step % 7 :: 7] = (-1) ** step * 10**12
        time.sleep(0)
        seen[...] = good
        time.sleep(1e-3)
thread = threading.Thread(target=disturb)
thread.start()
refused = made = 0
try:
    for call in calls:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            try:
                call()
                made += 1
            except (IndexError, RuntimeError) as e:
                assert "panic" not in str(e), e
                refused += 1
finally:
    running = False
    thread.join()
print(made > 0, refused > 0)
"""


def test_indices_that_another_thread_writes_never_lead_outside():
    code = RACES.replace("SECONDS", "0.1")
    done = child.python("-c", code)
    assert (done.returncode, done.stdout.split()) == (0, ["True", "True"]), done.stderr[-2000:]


def test_dlpack_stream_is_checked_as_pytorch_does():
    x = torch.ones(2)
    assert x.__dlpack__(stream=-1) is not None and x.__dlpack__(stream=None) is not None
    with pytest.raises(AssertionError, match="stream should be None on cpu."):
        x.__dlpack__(stream=0)
    for wrong in (object(), True):
        with pytest.raises(TypeError, match="stream must be ``int`` or ``none``"):
            x.__dlpack__(stream=wrong)
    with pytest.raises(BufferError, match="layout other than torch.strided"):
        torch.eye(2).to_sparse().__dlpack__()
    with pytest.raises(BufferError, match="Unsupported device_type: 16"):
        x.__dlpack__(max_version=(1, 0), dl_device=(16, 0))
    with pytest.raises(ValueError, match="cannot move .* tensor from .*"):
        torch.from_dlpack(x, device="meta", copy=False)


def test_tensors_are_made_of_what_shares_memory_by_dlpack_alone():
    class Shares:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self, **kwargs):
            return self.tensor.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

    x = torch.arange(3.0)
    copied, shared = torch.tensor(Shares(x)), torch.as_tensor(Shares(x))
    assert copied.tolist() == shared.tolist() == [0.0, 1.0, 2.0]
    assert copied.data_ptr() != x.data_ptr() == shared.data_ptr()


def test_array_of_a_tensor_that_requires_grad_is_made_without_grad_alone():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    calls = (
        lambda: x.numpy(),
        lambda: x.view(-1).numpy(),
        lambda: np.asarray(x),
        lambda: np.array(x),
        lambda: x.__array__(),
    )
    for call in calls:
        with pytest.raises(RuntimeError, match="Can't call numpy.. on Tensor that requires grad"):
            call()
        for mode in (torch.no_grad, torch.inference_mode):
            with mode():
                assert call().tolist() == [1.0, 2.0]
    assert x.numpy(force=True).tolist() == [1.0, 2.0]
