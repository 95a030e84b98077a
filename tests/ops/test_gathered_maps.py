"""Padding by other elements and nearest neighbours move elements as they are, of any type."""

import numpy as np
import pytest

import pytensorlib as torch
import pytensorlib.nn.functional as F

MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
DTYPES = ["uint8", "int16", "bfloat16", "float32", "int64", "float64", "complex64", "complex128"]


def image(shape, dtype):
    torch.manual_seed(0)
    x = torch.randint(0, 200, shape)
    return (x + 1j * x.flip(-1) if dtype.startswith("complex") else x).to(getattr(torch, dtype))


def plain(x):
    return x.numpy() if x.dtype != torch.bfloat16 else x.float().numpy()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", MODES)
def test_padding_equals_numpy(mode: str, dtype: str) -> None:
    for shape, pad in (
        ((2, 3, 9), (2, 3)),
        ((2, 2, 5, 40), (4, 1, 2, 4)),
        ((1, 2, 40, 8), (7, 0, 0, 3)),
        ((2, 1, 4, 5, 20), (3, 2, 1, 0, 2, 3)),
        ((3, 4, 70, 67), (1, 1, 2, 2)),
        ((1, 1, 3, 700), (9, 8, 1, 0)),
    ):
        x = image(shape, dtype)
        pairs = [(0, 0)] * (len(shape) - len(pad) // 2)
        pairs += [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
        want = np.pad(plain(x), pairs, mode=MODES[mode])
        np.testing.assert_array_equal(plain(F.pad(x, pad, mode=mode)), want)
        turned = x.transpose(0, 1).contiguous().transpose(0, 1)
        np.testing.assert_array_equal(plain(F.pad(turned, pad, mode=mode)), want)


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("size", [(8, 10), (12, 15), (16, 20), (20, 25), (7, 33), (2, 3), (4, 64)])
def test_nearest_neighbour_is_the_one_of_its_index(size: tuple[int, int], dtype: str) -> None:
    x = image((2, 3, 4, 5), dtype)
    rows, columns = ([i * n // m for i in range(m)] for n, m in ((4, size[0]), (5, size[1])))
    want = plain(x)[:, :, rows][..., columns]
    np.testing.assert_array_equal(plain(F.interpolate(x, size=size)), want)


def test_bits_of_zeros_and_nan_stay() -> None:
    x = torch.tensor([[-0.0, 0.0, float("nan"), 1.0] * 8])
    x.view(torch.int32)[0, 2] = 0x7FA00001  # One that says so when it is computed with.
    y = F.pad(x, (3, 3), mode="circular").view(torch.int32)
    np.testing.assert_array_equal(
        y.numpy(), np.pad(x.view(torch.int32).numpy(), ((0, 0), (3, 3)), "wrap")
    )
    y = F.interpolate(x[None], scale_factor=2.0).view(torch.int32)
    np.testing.assert_array_equal(y.numpy()[0], np.repeat(x.view(torch.int32).numpy(), 2, 1))


@pytest.mark.parametrize("mode", MODES)
def test_gradient_of_padding_is_that_of_differences(mode: str) -> None:
    x = torch.randn(1, 2, 5, 9, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: F.pad(x, (3, 2, 1, 4), mode=mode), x)
