"""Compiled calls have the bits of the functions and of their gradients, whatever computes them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib.nn import functional as F

CLASSES = torch.arange(40)
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "normalize": lambda x, w: F.normalize(x, dim=1) * w,
    "normalize by the 1-norm": lambda x, w: F.normalize(x, p=1, dim=1) * w,
    "normalize by the 3-norm": lambda x, w: F.normalize(x, p=3.0, dim=0) * w,
    "pairwise_distance": F.pairwise_distance,
    "pairwise_distance by the 3-norm": lambda x, w: F.pairwise_distance(x, w, p=3.0),
    "cosine_similarity": F.cosine_similarity,
    "cosine_embedding": lambda x, w: F.cosine_embedding_loss(x, w, torch.ones_like(x[:, 0])),
    "triplet": lambda x, w: F.triplet_margin_loss(x, w, w * 2),
    "triplet, swapped": lambda x, w: F.triplet_margin_loss(x, w, w * 2, swap=True),
    "norm": lambda x, w: x.norm() * w,
    "norm of rows": lambda x, w: x.norm(dim=1) * w[:, 0],
    "3-norm": lambda x, w: x.norm(3, dim=1),
    "1-norm": lambda x, w: x.norm(1, dim=1),
    "inf-norm": lambda x, w: x.norm(math.inf, dim=1),
    "dist": torch.dist,
    "cdist": torch.cdist,
    "pdist": lambda x, w: F.pdist(x),
    "gaussian_nll": lambda x, w: F.gaussian_nll_loss(x, w, w * w + 1),
    "poisson_nll": lambda x, w: F.poisson_nll_loss(x, w.abs()),
    "bce": lambda x, w: F.binary_cross_entropy(x.sigmoid(), w.sigmoid()),
    "bce with logits": lambda x, w: F.binary_cross_entropy_with_logits(x, w.sigmoid()),
    "kl_div": lambda x, w: F.kl_div(x.log_softmax(1), w.softmax(1), reduction="batchmean"),
    "smooth_l1": F.smooth_l1_loss,
    "huber": F.huber_loss,
    "mse": F.mse_loss,
    "l1": F.l1_loss,
    "hinge_embedding": lambda x, w: F.hinge_embedding_loss(x, w.sign()),
    "margin_ranking": lambda x, w: F.margin_ranking_loss(x, w, w.sign()),
    "soft_margin": lambda x, w: F.soft_margin_loss(x, w.sign()),
    "multilabel_soft_margin": lambda x, w: F.multilabel_soft_margin_loss(x, w.sigmoid()),
    "multi_margin": lambda x, w: F.multi_margin_loss(x, CLASSES.to(x.device)),
    "multilabel_margin": lambda x, w: F.multilabel_margin_loss(
        x[:, :5], torch.tensor([[0, 2, -1, 0, 0]] * 40, device=x.device)
    ),
    "cross_entropy": lambda x, w: F.cross_entropy(x, CLASSES.to(x.device)),
    "layer_norm": lambda x, w: F.layer_norm(x, (100,)) * w,
    "rms_norm": lambda x, w: F.rms_norm(x, (100,)) * w,
    "group_norm": lambda x, w: F.group_norm(x, 4) * w,
    "batch_norm": lambda x, w: F.batch_norm(x, None, None, training=True) * w,
    "instance_norm": lambda x, w: F.instance_norm(x[None]) * w,
    "local_response_norm": lambda x, w: F.local_response_norm(x[None], 3),
    "softmax": lambda x, w: x.softmax(1) * w,
    "logsumexp": lambda x, w: x.logsumexp(1),
    "var": lambda x, w: x.var(1),
    "std": lambda x, w: x.std(),
    "std_mean": lambda x, w: torch.std_mean(x, 1)[0],
    "renorm": lambda x, w: x.renorm(2, 0, 1.0) * w,
    "prod": lambda x, w: x.prod(1),
    "cumsum": lambda x, w: x.cumsum(1) * w,
    "aminmax": lambda x, w: sum(torch.aminmax(x, dim=1)),
    "amax": lambda x, w: x.amax(1),
    "median": lambda x, w: x.median(1)[0],
    "nanmean": lambda x, w: x.nanmean(1),
    "gelu": lambda x, w: F.gelu(x) * w,
    "glu": lambda x, w: F.glu(x),
    "kron": lambda x, w: torch.kron(x, w[:2, :2]),
    "cross": lambda x, w: torch.linalg.cross(x[:, :3], w[:, :3]),
    "max_pool1d": lambda x, w: F.max_pool1d(x, 2),
    "avg_pool1d": lambda x, w: F.avg_pool1d(x, 3),
    "interpolate": lambda x, w: F.interpolate(x[None, None], scale_factor=2, mode="bilinear"),
    "matmul": lambda x, w: x @ w.t(),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("device", ["cpu", "wgpu"])
def test_compiled_calls_have_the_bits_of_eager_ones(device: str, name: str) -> None:
    if device == "wgpu" and not torch.wgpu.is_available():
        pytest.skip("no GPU")
    generator = torch.Generator().manual_seed(0)
    x, w = (torch.randn(40, 100, generator=generator).to(device) for _ in range(2))

    def results(call: Callable[[Any, Any], Any]) -> list[Any]:
        a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
        y = call(a, b)
        y.backward()
        with torch.no_grad():
            return [y, call(x, w), a.grad, b.grad]

    def step(a: Any, b: Any) -> Any:
        return CALLS[name](a, b).sum()

    want, compiled = results(step), torch.compile(step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(4):
            got = results(compiled)
    for p, q in zip(got, want, strict=True):
        assert (p is None) == (q is None)
        assert p is None or torch.equal(p, q)
