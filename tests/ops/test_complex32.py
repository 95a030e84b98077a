"""complex32: pairs of float16, made, converted, moved, and computed with as wider ones are."""

from __future__ import annotations

import io
import math
import pickle
import warnings

import numpy as np
import pytest

import pytensorlib as torch

Z = [1 + 2j, 2.0, 0.5j, -3.25 - 0.125j]


@pytest.fixture
def z():
    return torch.tensor(Z, dtype=torch.complex32)


def test_facts(z):
    dtype = torch.complex32
    assert torch.chalf is dtype and dtype.itemsize == 4 and z.element_size() == 4
    assert dtype.is_complex and not dtype.is_floating_point and dtype.is_signed
    assert dtype.to_real() is torch.float16 and torch.float16.to_complex() is dtype
    assert dtype.to_complex() is dtype and torch.bfloat16.to_complex() is torch.complex64
    assert repr(dtype) == "torch.complex32" and pickle.loads(pickle.dumps(dtype)) is dtype
    assert z.type() == "torch.ComplexHalfTensor" and z.is_complex()
    with pytest.raises(TypeError, match="Got unsupported ScalarType ComplexHalf"):
        z.numpy()
    with pytest.raises(TypeError):
        torch.set_default_dtype(dtype)


def test_making(z):
    assert z.dtype is torch.complex32 and z.tolist() == Z and z[2].item() == 0.5j
    assert torch.zeros(2, dtype=torch.chalf).tolist() == [0, 0]
    assert torch.ones(2, dtype=torch.chalf).tolist() == [1, 1]
    assert torch.full((2,), 1 + 2j, dtype=torch.chalf).tolist() == [1 + 2j] * 2
    assert z.clone().fill_(2).tolist() == [2] * 4 and torch.empty_like(z).dtype is torch.chalf
    assert torch.randn(3, dtype=torch.chalf).dtype is torch.chalf
    parts = torch.tensor([1.0, 2.0]).half()
    assert torch.complex(parts, parts).tolist() == [1 + 1j, 2 + 2j]


def test_conversions(z):
    for dtype in (torch.complex64, torch.complex128):
        assert z.to(dtype).dtype is dtype and z.to(dtype).tolist() == Z
        assert z.to(dtype).chalf().tolist() == Z
    wide = torch.tensor([1.000123 + 1e9j, 70000.0, -65519.0])
    assert wide.chalf().tolist() == [complex(1, math.inf), math.inf, -65504.0]
    assert torch.tensor([1.5, 2]).chalf().tolist() == [1.5, 2.0]
    assert torch.tensor([3]).chalf().tolist() == [3.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert z.float().tolist() == [1.0, 2.0, 0.0, -3.25] and z.half().dtype is torch.float16
        assert z.int().tolist() == [1, 2, 0, -3]
        assert z.to(torch.float8_e5m2).tolist() == [1.0, 2.0, 0.0, -3.0]
    assert z.bool().tolist() == [True] * 4
    assert torch.zeros(4, dtype=torch.complex64).copy_(z).tolist() == Z


def test_promotion(z):
    promote, c = torch.promote_types, torch.complex32
    for other in (torch.bool, torch.uint8, torch.int64, torch.float16, c):
        assert promote(c, other) is c is promote(other, c)
    assert promote(c, torch.bfloat16) is torch.complex64 is promote(torch.float32, c)
    assert promote(c, torch.float64) is torch.complex128 is promote(torch.complex128, c)
    for other in (torch.uint16, torch.float8_e5m2):
        with pytest.raises(RuntimeError, match="not supported, attempted to promote"):
            promote(c, other)
    assert torch.result_type(z, 1.0) is c and torch.result_type(z, 1j) is c
    assert torch.result_type(torch.ones(2).half(), 1j) is c
    assert torch.result_type(torch.ones(2).bfloat16(), 1j) is torch.complex64
    assert (torch.ones(2).half() * 1j).tolist() == [1j, 1j]
    with pytest.raises(RuntimeError, match="Unknown Complex ScalarType for Float8_e4m3fn"):
        torch.result_type(torch.ones(2, dtype=torch.float8_e4m3fn), 1j)


def test_parts_share_the_memory(z):
    assert z.real.dtype is torch.float16 and z.real.tolist() == [1.0, 2.0, 0.0, -3.25]
    assert z.imag.tolist() == [2.0, 0.0, 0.5, -0.125]
    pairs = torch.view_as_real(z)
    assert pairs.dtype is torch.float16 and pairs.tolist()[3] == [-3.25, -0.125]
    pairs[0, 1] = 7
    assert z[0].item() == 1 + 7j
    again = torch.view_as_complex(pairs)
    assert again.dtype is torch.complex32 and again.data_ptr() == z.data_ptr()
    z.imag.fill_(1)
    assert z.tolist() == [1 + 1j, 2 + 1j, 1j, -3.25 + 1j]
    assert z.view(torch.uint8).shape == (16,) and z.view(torch.int32).view(z.dtype).equal(z)


def test_elements_are_moved(z):
    a = np.array(Z)
    index, mask = np.array([3, 0]), np.array([True, False, False, True])
    i, m = torch.from_numpy(index), torch.from_numpy(mask)
    pairs = [
        (z[::2], a[::2]),
        (z[i], a[index]),
        (z[m], a[mask]),
        (z.gather(0, i), a[index]),
        (z.index_select(0, i), a[index]),
        (z.reshape(2, 2).t().contiguous(), a.reshape(2, 2).T),
        (torch.cat([z, z]), np.concatenate([a, a])),
        (torch.cat([z, torch.ones(1).half()]), np.concatenate([a, [1]])),
        (torch.stack([z, z]), np.stack([a, a])),
        (z.flip(0), a[::-1]),
        (z.repeat(2), np.tile(a, 2)),
        (torch.where(m, z, 2.0), np.where(mask, a, 2.0)),
        (z.masked_fill(m, 1j), np.where(mask, 1j, a)),
        (z.index_put((i,), z[:2]), [2.0, 2.0, 0.5j, 1 + 2j]),
        (torch.nn.functional.pad(z, (1, 0)), np.pad(a, (1, 0))),
        (z.expand(2, 4).contiguous(), np.broadcast_to(a, (2, 4))),
    ]
    for k, (got, want) in enumerate(pairs):
        assert got.dtype is torch.complex32, k
        assert got.tolist() == np.asarray(want).tolist(), k
    z[1] = 5j
    z[i] = 1
    assert z.tolist() == [1, 5j, 0.5j, 1]


def test_arithmetic_rounds_the_wide_result(z):
    a = np.array(Z)
    for got, want in (
        (z + z, a + a),
        (z * z, a * a),
        (z - 1, a - 1),
        (-z, -a),
        (z.conj(), a.conj()),
        (z / 2, a / 2),
        (z.exp(), np.exp(a)),
    ):
        assert got.dtype is torch.complex32
        parts = np.stack([want.real, want.imag], -1).astype(np.float16)
        assert torch.view_as_real(got).tolist() == parts.tolist()
    assert z.abs().dtype is torch.float16
    assert z.abs().tolist() == np.abs(a).astype(np.float16).tolist()
    assert (z == z).all() and (z != z + 1).all() and torch.equal(z, z.clone())
    assert z.isfinite().all() and not z.isnan().any() and z.count_nonzero().item() == 4
    w = torch.tensor(Z, requires_grad=True)
    (w.chalf() * (2 + 1j)).abs().sum().backward()
    assert w.grad.dtype is torch.complex64 and w.grad.isfinite().all()


@pytest.mark.parametrize(
    "ask",
    [
        lambda z: z @ z,
        lambda z: z.sum(),
        lambda z: z.cumsum(0),
        lambda z: torch.fft.fft(z),
        lambda z: torch.linalg.inv(z.reshape(2, 2)),
        lambda z: torch.arange(3, dtype=z.dtype),
        lambda z: z.sort(),
    ],
)
def test_what_does_not_compute_with_them_says_so(z, ask):
    with pytest.raises((NotImplementedError, RuntimeError)):
        ask(z)


def test_printing_and_files(z):
    x = torch.tensor([[1.5 + 2j, 1e-3]], dtype=torch.complex32)
    assert repr(x) == "tensor([[1.5000e+00+2.j, 1.0004e-03+0.j]], dtype=torch.complex32)"
    assert repr(z[0]) == "tensor(1.+2.j, dtype=torch.complex32)"
    file = io.BytesIO()
    torch.save({"z": z, "dtype": z.dtype}, file)
    file.seek(0)
    back = torch.load(file)
    assert back["z"].tolist() == Z and back["dtype"] is torch.complex32
    assert pickle.loads(pickle.dumps(z)).tolist() == Z
