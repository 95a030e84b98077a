"""`torch.masked` beside NumPy's masked arrays."""

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import masked

RNG = np.random.default_rng(4)
X = RNG.standard_normal((4, 5, 3))
KEEP = RNG.random((4, 5, 3)) < 0.6
KEEP[0, :, 1] = True
MA = np.ma.masked_array(X, ~KEEP)
x, mask = torch.from_numpy(X), torch.from_numpy(KEEP)


@pytest.mark.parametrize("dim", [None, 1, (0, 2), -1])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "amax", "amin", "var", "std"])
def test_reductions_are_those_of_numpy(name, keepdim, dim):
    options = {"ddof": 1} if name in ("var", "std") else {}
    expected = getattr(MA, {"amax": "max", "amin": "min"}.get(name, name))(
        axis=dim, keepdims=keepdim, **options
    )
    found = getattr(masked, name)(x, dim, keepdim=keepdim, mask=mask).numpy()
    sure = ~np.ma.getmaskarray(np.ma.asarray(expected))
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found[sure], np.ma.getdata(expected)[sure], rtol=1e-12)


@pytest.mark.parametrize("name", masked.__all__)
def test_a_mask_that_takes_all_changes_nothing(name):
    if name == "logaddexp":
        all_of = torch.ones_like(mask)
        expected = torch.logaddexp(x, x)
        assert masked.logaddexp(x, x, input_mask=all_of, other_mask=all_of).equal(expected)
        return
    arguments = (2.0, 1) if name in ("norm", "normalize") else (1,)
    whole = getattr(masked, name)(x, *arguments, mask=torch.ones(1, dtype=torch.bool))
    assert whole.equal(getattr(masked, name)(x, *arguments))


def test_order_statistics_and_running_results():
    arg = masked.argmax(x, 1, mask=mask)
    assert arg.dtype == x.dtype
    assert (arg.numpy() == np.where(KEEP, X, -np.inf).argmax(1)).all()
    assert (masked.argmin(x, mask=mask) == np.where(KEEP, X, np.inf).argmin()).item()
    low = masked.median(x[0, :, 1:2], 0, mask=mask[0, :, 1:2])
    assert low.item() == np.median(X[0, :, 1])
    np.testing.assert_allclose(
        masked.cumsum(x, 1, mask=mask).numpy(), np.where(KEEP, X, 0).cumsum(1)
    )
    found = masked.cumprod(x, 1, mask=mask).numpy()
    np.testing.assert_allclose(found, np.where(KEEP, X, 1).cumprod(1))
    assert masked.sum(torch.ones(3, dtype=torch.uint8)).dtype == torch.int64


def test_normalisations():
    e = np.where(KEEP, np.exp(X), 0)
    soft = masked.softmax(x, 1, mask=mask)
    np.testing.assert_allclose(soft.numpy(), e / e.sum(1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(masked.softmin(-x, 1, mask=mask).numpy(), soft.numpy(), rtol=1e-12)
    assert (masked.log_softmax(x, 1, mask=mask).exp() - soft).abs().max() < 1e-12
    np.testing.assert_allclose(masked.logsumexp(x, 1, mask=mask).numpy(), np.log(e.sum(1)))
    unit = masked.normalize(x, 2.0, 1, mask=mask)
    np.testing.assert_allclose(masked.norm(unit, 2.0, 1).numpy(), 1, rtol=1e-12)
    assert masked.norm(x, -torch.inf, mask=mask).item() == np.abs(X[KEEP]).min()


def test_gradients_reach_what_the_mask_takes_alone():
    leaf = x.clone().requires_grad_()
    masked.var(leaf, 1, mask=mask).sum().backward()
    assert not leaf.grad[~mask].any() and torch.isfinite(leaf.grad[0, :, 1]).all()
    f = lambda t: masked.softmax(t, 1, mask=mask)  # noqa: E731
    assert torch.autograd.gradcheck(f, (leaf,))


def test_bad_masks_and_dimensions_are_refused():
    with pytest.raises(IndexError, match="mask dimensionality higher"):
        masked.sum(x[0], mask=mask)
    with pytest.raises(IndexError, match=r"expected to be in range of \[-3, 2\]"):
        masked.sum(x, 3)
    with pytest.raises(RuntimeError, match="appears multiple times"):
        masked.amax(x, (0, -3))
    with pytest.raises(ValueError, match="Input dtype must be either a floating"):
        masked.mean(torch.ones(2, dtype=torch.int64))
    with pytest.raises(ValueError, match="no fully masked out rows"):
        masked.median(torch.ones(2, dtype=torch.int64), 0, mask=torch.tensor([False, False]))
    with pytest.raises(NotImplementedError, match="no tensors with masks"):
        masked.MaskedTensor(x, x > 0)
