"""Many short rows, which are combined in groups: against NumPy, and each against itself alone."""

import numpy as np
import pytest

import pytensorlib as torch

LENGTHS = [9, 15, 16, 17, 24, 31, 32, 33, 40, 47, 48, 49, 62, 63, 64, 65, 128]
NAMES = {"sum": np.sum, "prod": np.prod, "amax": np.max, "amin": np.min}
DTYPES = ["float32", "float64", "int64", "int32", "uint8", "bfloat16", "float16"]


def rows(count, length, dtype, step=1):
    torch.manual_seed(length)
    x = torch.randn(count, length * step)
    x = 1 + x / 8 if dtype.startswith(("float", "bfloat")) else (x * 3).abs().floor() % 7
    return x.to(getattr(torch, dtype))[:, : length * step : step]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_group_of_rows_equals_each_row_alone_and_numpy(name: str, dtype: str) -> None:
    for length in LENGTHS:
        x = rows(37, length, dtype)
        y = getattr(x, name)(1)
        alone = torch.stack([getattr(row, name)(0) for row in x])
        assert torch.equal(y, alone), length
        wide = x.double().numpy() if x.is_floating_point() else x.long().numpy()
        want = NAMES[name](wide, axis=1)
        # A product's error grows with its factors; half types round once more.
        tolerance = {"float64": 1e-13, "float32": 1e-6}.get(dtype, 1e-2) * length**0.5
        np.testing.assert_allclose(y.double().numpy(), want.astype(np.float64), rtol=tolerance)


@pytest.mark.parametrize("length", [24, 40, 256])
@pytest.mark.parametrize("name", NAMES)
def test_row_that_is_not_finite_leaves_its_neighbours(name: str, length: int) -> None:
    x = rows(50, length, "float32")
    clean = getattr(x, name)(1)
    x[17, length - 1] = float("nan")
    x[20, 3] = float("inf")
    y = getattr(x, name)(1).numpy()
    assert np.isnan(y[17])
    assert y[20] == np.inf if name != "amin" else np.isfinite(y[20])
    kept = np.setdiff1d(np.arange(50), [17, 20])
    np.testing.assert_array_equal(y[kept], clean.numpy()[kept])


@pytest.mark.parametrize("length", [24, 50, 256])
def test_rows_of_any_layout_equal_their_copy(length: int) -> None:
    whole = torch.randn(40, 3, length + 5)
    for x in (whole[:, 1, 2 : 2 + length], whole[::2, 0, :length], whole[:, :, :length][:, 2]):
        assert torch.equal(x.sum(1), x.contiguous().sum(1))
        assert torch.equal(x.amax(1), x.contiguous().amax(1))
    assert torch.equal(whole[..., :length].sum(2), whole[..., :length].contiguous().sum(2))
    for many in (1, 2):
        torch.set_num_threads(many)
        x = torch.arange(4000 * length).reshape(4000, length).float().sin()
        total = x.double().sum(1)
        assert (x.sum(1).double() - total).abs().max() < 1e-4
