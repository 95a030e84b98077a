"""Functions of matrices, images, volumes and lines in many memory orders, and how they lie.

`tests/data/strides.json` holds what PyTorch gave: `python tests/stride_cases.py` writes it with the
`torch` that the interpreter has.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Not compared: where sizes of one let strides be read in two ways, both of which are one memory,
# sums with numbers answer in rows; and what one kernel does here takes several there.
BOTH = ("one channel", "points")
SKIPPED = {
    "rms_norm": BOTH,
    "normalize": BOTH,
    "add": BOTH,
    "bias": BOTH,
    "where": BOTH,
    "dropout of all": BOTH,
    "dropout2d": ("one channel",),
    "alpha_dropout": ("one by chance", "one by another"),
    "binary cross entropy": (*BOTH, "one by another"),
}
RECORDED = Path(__file__).parent / "data" / "strides.json"


def layouts(torch: Any) -> dict[int, dict[str, Any]]:
    """Tensors of one content by rank and by the name of their order."""
    last, last3 = torch.channels_last, torch.channels_last_3d

    def rows(*shape: int) -> Any:
        return torch.arange(float(torch.Size(shape).numel())).sin().reshape(shape)

    def strided(shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        reach = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        return rows(reach).as_strided(shape, strides)

    images = {
        "rows": rows(2, 4, 6, 6),
        "last": rows(2, 4, 6, 6).to(memory_format=last),
        "last of one": rows(1, 4, 6, 6).to(memory_format=last),
        "one by chance": strided((1, 4, 6, 6), (4, 1, 24, 4)),
        "one by another": strided((1, 4, 6, 6), (6, 1, 24, 4)),
        "one channel": rows(2, 1, 6, 6).to(memory_format=last),
        "one channel in rows": strided((2, 1, 6, 6), (36, 36, 6, 1)),
        "points": rows(2, 4, 1, 1).to(memory_format=last),
        "points in rows": rows(2, 4, 1, 1),
        "columns": rows(2, 4, 6, 1).to(memory_format=last),
        "lines": rows(2, 4, 1, 6).to(memory_format=last),
        "every other column": rows(2, 4, 6, 12).to(memory_format=last)[..., ::2],
        "some channels": rows(2, 8, 6, 6).to(memory_format=last)[:, :4],
        "cropped": rows(2, 4, 8, 8).to(memory_format=last)[:, :, 1:7, 1:7],
        "cropped rows": rows(2, 4, 8, 8)[:, :, 1:7, 1:7],
        "channels and columns": rows(2, 6, 6, 4).transpose(1, 3),
        "turned": rows(2, 4, 6, 6).transpose(2, 3),
        "batch inside": rows(4, 2, 6, 6).transpose(0, 1),
        "reversed": rows(6, 6, 4, 2).permute(3, 2, 1, 0),
        "expanded": rows(1, 4, 6, 6).expand(2, 4, 6, 6),
    }
    volumes = {
        "rows": rows(2, 4, 3, 6, 6),
        "last": rows(2, 4, 3, 6, 6).to(memory_format=last3),
        "one by chance": strided((1, 4, 3, 6, 6), (4, 1, 144, 24, 4)),
        "every other column": rows(2, 4, 3, 6, 12).to(memory_format=last3)[..., ::2],
        "channels and columns": rows(2, 6, 3, 6, 4).transpose(1, 4),
    }
    signals = {
        "rows": rows(2, 4, 6),
        "last": rows(2, 6, 4).transpose(1, 2),
        "every other": rows(2, 4, 12)[..., ::2],
        "batch inside": rows(4, 2, 6).transpose(0, 1),
    }
    # Symmetric, positive definite matrices, which every decomposition takes.
    square = rows(3, 3) + rows(3, 3).mT + 4 * torch.eye(3)
    matrices = {
        "rows": square,
        "columns": square.mT,
        "batch": torch.stack([square, square + 1]),
        "batch of columns": torch.stack([square, square + 1]).mT,
        "batch of batches": torch.stack([square, square + 1])[:, None],
        "batch of one": square[None],
        "expanded": square.expand(2, 3, 3),
        "one number": square[:1, :1],
        "none": square[None][:0],
    }
    return {2: matrices, 3: signals, 4: images, 5: volumes}


def decompositions(torch: Any) -> dict[str, Callable[[Any], Any]]:
    """Functions of square matrices; tall and wide ones are their parts."""
    linalg = torch.linalg

    def tall(x: Any) -> Any:
        return x[..., :2]

    def wide(x: Any) -> Any:
        return x[..., :2, :]

    every: dict[str, Callable[[Any], Any]] = {
        "inv": linalg.inv,
        "inverse": lambda x: x.inverse(),
        "pinv": linalg.pinv,
        "matrix_power": lambda x: linalg.matrix_power(x, -1),
        "cholesky": linalg.cholesky,
        "cholesky of the upper triangle": lambda x: linalg.cholesky(x, upper=True),
        "cholesky_inverse": torch.cholesky_inverse,
        "eigh": linalg.eigh,
        "eig": linalg.eig,
        "svd": lambda x: linalg.svd(tall(x)),
        "svd of a wide one": lambda x: linalg.svd(wide(x), full_matrices=False),
        "torch.svd": torch.svd,
        "qr": lambda x: linalg.qr(tall(x)),
        "qr of a wide one": lambda x: linalg.qr(wide(x)),
        "complete qr": lambda x: linalg.qr(tall(x), mode="complete"),
        "r": lambda x: linalg.qr(tall(x), mode="r"),
        "lu": linalg.lu,
        "lu_factor": lambda x: linalg.lu_factor(tall(x)),
        "lu_unpack": lambda x: torch.lu_unpack(*linalg.lu_factor(x)),
        "ldl_factor": linalg.ldl_factor,
        "geqrf": lambda x: torch.geqrf(wide(x)),
        "householder_product": lambda x: linalg.householder_product(*torch.geqrf(x)),
        "ormqr": lambda x: torch.ormqr(*torch.geqrf(x), tall(x)),
        "solve": lambda x: linalg.solve(x, tall(x)),
        "solve for a vector": lambda x: linalg.solve(x, x[..., 0]),
        "solve from the right": lambda x: linalg.solve(x, wide(x), left=False),
        "solve_triangular": lambda x: linalg.solve_triangular(x, tall(x), upper=True),
        "solve_triangular from the right": lambda x: linalg.solve_triangular(
            x, wide(x), upper=False, left=False
        ),
        "cholesky_solve": lambda x: torch.cholesky_solve(tall(x), x),
        "lu_solve": lambda x: linalg.lu_solve(*linalg.lu_factor(x), tall(x)),
        "lu_solve of the adjoint": lambda x: linalg.lu_solve(
            *linalg.lu_factor(x), tall(x), adjoint=True
        ),
        "lu_solve from the right": lambda x: linalg.lu_solve(
            *linalg.lu_factor(x), wide(x), left=False
        ),
        "ldl_solve": lambda x: linalg.ldl_solve(*linalg.ldl_factor(x), tall(x)),
        "lstsq": lambda x: linalg.lstsq(x, tall(x)).solution,
        "lstsq of a wide one": lambda x: linalg.lstsq(wide(x), wide(x)).solution,
        "nonzero": torch.nonzero,
        "argwhere": torch.argwhere,
    }
    return every


def functions(torch: Any) -> dict[int, dict[str, Callable[[Any], Any]]]:
    """Functions of one tensor by rank."""
    F = torch.nn.functional  # noqa: N806
    last = torch.channels_last
    one = torch.ones

    def weight(x: Any, *size: int) -> Any:
        return one(3, x.size(1), *size)

    def first(x: Any) -> Any:
        return torch.zeros_like(x, dtype=torch.int64)

    def unpooled(x: Any) -> Any:
        if min(x.shape[2:]) < 2:
            return x.clone()
        y, at = F.max_pool2d(x, 2, return_indices=True)
        return F.max_unpool2d(y, at, 2)

    every = {
        "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
        "batch_norm with numbers": lambda x: F.batch_norm(x, one(x.size(1)), one(x.size(1))),
        "group_norm": lambda x: F.group_norm(x, x.size(1)),
        "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
        "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:]),
        "normalize": F.normalize,
        "channel_shuffle": lambda x: F.channel_shuffle(x, x.size(1) // 2 or 1),
        "cat along the batch": lambda x: torch.cat([x, x], 0),
        "cat along channels": lambda x: torch.cat([x, x], 1),
        "cat along rows": lambda x: torch.cat([x, x], 2),
        "cat of one": lambda x: torch.cat([x], 1),
        "cat with rows": lambda x: torch.cat([x, x.contiguous()], 1),
        "stack": lambda x: torch.stack([x, x]),
        "stack of channels": lambda x: torch.stack([x, x], 1),
        "relu": F.relu,
        "silu": F.silu,
        "gelu": F.gelu,
        "leaky_relu": F.leaky_relu,
        "logsigmoid": F.logsigmoid,
        "rrelu": F.rrelu,
        "prelu": lambda x: F.prelu(x, one(1)),
        "glu": lambda x: F.glu(torch.cat([x, x], 1), 1),
        "dropout": lambda x: F.dropout(x, 0.5),
        "dropout of all": lambda x: F.dropout(x, 1.0),
        "alpha_dropout": lambda x: F.alpha_dropout(x, 0.5, True),
        "native_dropout": lambda x: torch.native_dropout(x, 0.5, True),
        "softmax": lambda x: x.softmax(1),
        "add": lambda x: x + 1,
        "add itself": lambda x: x + x,
        "add rows": lambda x: x + x.contiguous(),
        "add to rows": lambda x: x.contiguous() + x,
        "bias": lambda x: x + one(x.size(1), *(1,) * (x.dim() - 2)),
        "clamp": lambda x: x.clamp(0, 1),
        "where": lambda x: torch.where(x > 0, x, 0.0),
        "empty_like": torch.empty_like,
        "randn_like": torch.randn_like,
        "clone": lambda x: x.clone(),
        "double": lambda x: x.double(),
        "bernoulli": lambda x: torch.bernoulli(x.abs()),
        "sum": lambda x: x.sum(1, keepdim=True),
        "cumsum": lambda x: x.cumsum(1),
        "sort": lambda x: x.sort(1),
        "argsort": lambda x: x.argsort(1),
        "flip": lambda x: x.flip(1),
        "roll": lambda x: x.roll(1, 2),
        "gather": lambda x: x.gather(1, first(x)),
        "index_fill": lambda x: x.index_fill(1, torch.tensor([0]), 1.0),
        "index_put": lambda x: x.index_put((torch.tensor([0]),), torch.tensor(1.0)),
        "slice_scatter": lambda x: x.slice_scatter(x[:, :1], 1, 0, 1),
        "select_scatter": lambda x: x.select_scatter(x[:, 0], 1, 0),
        "masked_fill": lambda x: x.masked_fill(x > 0, 1.0),
        "mse_loss": lambda x: F.mse_loss(x, x, reduction="none"),
        "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, x, reduction="none"),
        "binary cross entropy": lambda x: F.binary_cross_entropy_with_logits(
            x, x, reduction="none"
        ),
        "kl_div": lambda x: F.kl_div(x, x, reduction="none"),
    }
    images = {
        "conv": lambda x: F.conv2d(x, weight(x, 3, 3), padding=1),
        "conv by points": lambda x: F.conv2d(x, weight(x, 1, 1)),
        "conv to one channel": lambda x: F.conv2d(x, one(1, x.size(1), 1, 1)),
        "depthwise": lambda x: F.conv2d(x, one(x.size(1), 1, 1, 1), groups=x.size(1)),
        "conv by a weight in that order": lambda x: F.conv2d(
            x, weight(x, 2, 2).to(memory_format=last), padding=1
        ),
        "conv_transpose": lambda x: F.conv_transpose2d(x, one(x.size(1), 3, 2, 2)),
        "max_pool": lambda x: F.max_pool2d(x, 3, 1, 1, return_indices=True),
        "avg_pool": lambda x: F.avg_pool2d(x, 3, 1, 1),
        "adaptive_avg_pool": lambda x: F.adaptive_avg_pool2d(x, 2),
        "mean of all": lambda x: F.adaptive_avg_pool2d(x, 1),
        "adaptive_max_pool": lambda x: F.adaptive_max_pool2d(x, 2, return_indices=True),
        "largest of all": lambda x: F.adaptive_max_pool2d(x, 1),
        "max_unpool": unpooled,
        "nearest": lambda x: F.interpolate(x, scale_factor=2),
        "nearest-exact": lambda x: F.interpolate(x, size=(3, 4), mode="nearest-exact"),
        "bilinear": lambda x: F.interpolate(x, size=(3, 4), mode="bilinear"),
        "bicubic": lambda x: F.interpolate(x, size=(3, 4), mode="bicubic"),
        "antialias": lambda x: F.interpolate(x, size=(3, 4), mode="bilinear", antialias=True),
        "area": lambda x: F.interpolate(x, size=(3, 4), mode="area"),
        "grid_sample": lambda x: F.grid_sample(
            x, torch.zeros(x.size(0), 3, 5, 2), align_corners=False
        ),
        "pad": lambda x: F.pad(x, (1, 1)),
        "pad by nothing": lambda x: F.pad(x, (0, 0)),
        "pad and cut": lambda x: F.pad(x, (-1, 1)),
        "replicate": lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate"),
        "circular": lambda x: F.pad(x, (1, 1, 1, 1), mode="circular"),
        "pixel_shuffle": lambda x: F.pixel_shuffle(torch.cat([x] * 4, 1), 2),
        "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 1),
        "dropout2d": lambda x: F.dropout2d(x, 0.5),
        "hstack": lambda x: torch.hstack([x, x]),
        "dstack": lambda x: torch.dstack([x, x]),
        "rot90": lambda x: x.rot90(1, (2, 3)),
        "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    }
    volumes = {
        "max_pool": lambda x: F.max_pool3d(x, 3, 1, 1, return_indices=True),
        "avg_pool": lambda x: F.avg_pool3d(x, 3, 1, 1),
        "adaptive_avg_pool": lambda x: F.adaptive_avg_pool3d(x, 2),
        "mean of all": lambda x: F.adaptive_avg_pool3d(x, 1),
        "nearest": lambda x: F.interpolate(x, scale_factor=2),
        "trilinear": lambda x: F.interpolate(x, size=(2, 3, 4), mode="trilinear"),
        "area": lambda x: F.interpolate(x, size=(2, 3, 4), mode="area"),
        "pad": lambda x: F.pad(x, (1, 1)),
        "replicate": lambda x: F.pad(x, (1,) * 6, mode="replicate"),
        "circular": lambda x: F.pad(x, (1,) * 6, mode="circular"),
    }
    signals = {
        "conv": lambda x: F.conv1d(x, weight(x, 3), padding=1),
        "max_pool": lambda x: F.max_pool1d(x, 2),
        "avg_pool": lambda x: F.avg_pool1d(x, 2),
        "adaptive_avg_pool": lambda x: F.adaptive_avg_pool1d(x, 2),
        "adaptive_max_pool": lambda x: F.adaptive_max_pool1d(x, 2),
        "lp_pool": lambda x: F.lp_pool1d(x, 2, 2),
        "linear": lambda x: F.interpolate(x, scale_factor=2, mode="linear"),
        "pad": lambda x: F.pad(x, (1, 1)),
    }
    return {
        2: decompositions(torch),
        3: every | signals,
        4: every | images,
        5: every | volumes,
    }


def strides(y: Any) -> str:
    """The strides of a result, or of each of several."""
    several = y if isinstance(y, (tuple, list)) else [y]
    return " ".join(",".join(map(str, t.stride())) for t in several)


def main() -> None:
    """Write what the interpreter's `torch` gives."""
    import torch

    given, found = layouts(torch), {}
    for rank, calls in functions(torch).items():
        for name, f in calls.items():
            torch.manual_seed(0)
            # By result, since most orders share one.
            each: dict[str, list[str]] = {}
            for order, x in given[rank].items():
                if order in SKIPPED.get(name, ()):
                    continue
                each.setdefault(strides(f(x)), []).append(order)
            found[f"{rank} {name}"] = {y: ", ".join(orders) for y, orders in each.items()}
    RECORDED.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
