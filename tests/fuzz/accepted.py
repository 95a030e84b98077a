"""Differences from PyTorch that stay, each with its reason. A report counts them apart."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Accepted:
    """A pattern of findings: expressions on the category, the operator, and detail and call."""

    category: str
    op: str
    text: str
    reason: str

    def covers(self, category: str, op: str, text: str) -> bool:
        return (
            re.fullmatch(self.category, category) is not None
            and re.search(self.op, op) is not None
            and re.search(self.text, text, re.DOTALL) is not None
        )


FACTORS = r"linalg|qr|svd|lu|chol|geqrf|triangular|solve|eig|inverse|pinv"

ACCEPTED: tuple[Accepted, ...] = (
    # How results lie in memory
    Accepted(
        "STRIDE",
        "",
        r"stride=|'layout'|out=",
        "new results are rows in memory, but for pointwise ones of dense operands; PyTorch's "
        "iterator keeps more permutations",
    ),
    Accepted("STRIDE", FACTORS, "", "LAPACK leaves columns, ours are rows"),
    Accepted(
        "STRIDE",
        "attention|unravel_index|argwhere|nonzero|^unique",
        "",
        "PyTorch gives a transposed view of what its kernel fills",
    ),
    Accepted(
        "STRIDE|VALUE|GRADIENT",
        r"_scatter$",
        "stride=",
        "the result is contiguous; PyTorch keeps strides, also those that make elements overlap",
    ),
    Accepted("VALUE", "^(normal|randn|rand)", "out=(permuted|stepped)", "drawn in logical order"),
    # Errors
    Accepted(
        "ERROR_CLASS|ACCEPTED|REFUSED",
        "",
        r"keyword argument 'out'|got \([^)]*out=",
        "`out=` exists for more functions, and not for composites",
    ),
    Accepted(
        "ERROR_CLASS",
        "",
        r"Low precision dtypes|Expected a floating point|No CUDA|NVIDIA",
        "the class of error for a type or device that there is no kernel for",
    ),
    Accepted(
        "ERROR_CLASS",
        "",
        r"PyTorch IndexError: (Dimension specified as|Dimension out of range|index out of range)",
        "a size is refused before its dimensions are read; PyTorch reads them first",
    ),
    Accepted(
        "ERROR_CLASS", "interpolate", "cannot convert float infinity", "as Python converts it"
    ),
    Accepted(
        "REFUSED", "^__r", "takes no keyword", "PyTorch's give NotImplemented for a wrong call"
    ),
    Accepted(
        "ACCEPTED",
        "",
        r"out tensor to have dtype|same dtype|input tensor and hist|scalar type|Found dtype",
        "types are converted where PyTorch's kernel lacks the combination",
    ),
    Accepted(
        "ACCEPTED",
        "",
        r"view size is not compatible|without overflow|cannot be represented|reshape tensor of 0",
        "an implementation's limit, not a rule",
    ),
    Accepted("ACCEPTED", "index_reduce", "source tensor shape", "a 0-d source has one element"),
    Accepted("ACCEPTED", "vecdot|clamp|heaviside|cov", "", "more types and numbers are taken"),
    Accepted(
        "ACCEPTED",
        "loss|cross_entropy",
        r"not differentiable with respect to argument '(weight|target)'",
        "there is a derivative",
    ),
    Accepted(
        "REFUSED",
        FACTORS,
        r"Low precision dtypes|Expected a floating point",
        "a type without a kernel is refused when there are no elements, too",
    ),
    Accepted("REFUSED", "polygamma", "below 2\\^20", "bounds the time of a series"),
    # Values
    Accepted(
        "VALUE",
        "_ex$|^(linalg.)?lu|lu_unpack",
        "",
        "where the matrix is refused, the results are open",
    ),
    Accepted(
        "VALUE",
        "^(eq|ne|lt|le|gt|ge|nn.functional.threshold|clamp)",
        "",
        "a number out of the type's range is compared as it is, not wrapped",
    ),
    Accepted("VALUE|GRADIENT", "polygamma|digamma|lgamma|zeta|mvlgamma", "inf|nan", "poles"),
    Accepted(
        "VALUE",
        r"^(special\.)?(i0|i1|i0e|i1e|modified_bessel|scaled_modified|bessel)",
        "inf|nan",
        "the limit at infinity",
    ),
    Accepted(
        "VALUE", "special.*polynomial", "inf|nan", "NaN stays NaN; the recurrence overflows later"
    ),
    Accepted("VALUE", r"bessel_[jy]", "float64", "PyTorch is right to 1e-7 only"),
    Accepted("VALUE", "bucketize|searchsorted", "", "boundaries that are not sorted"),
    Accepted("REQUIRES_GRAD|GRADIENT", "logical_", "inplace", "a bool has no gradient"),
    Accepted(
        "DTYPE",
        "hinge_embedding|alpha_dropout|poisson_nll|cross_entropy|^cov|einsum",
        "",
        "types promote as in any expression",
    ),
    Accepted("SHAPE", "pixel_unshuffle|conv", "", "no channels: the sizes are as with channels"),
    Accepted(
        "REQUIRES_GRAD", "histogram|native_group_norm|nanmedian|logspace", "", "no derivative"
    ),
    Accepted(
        "VALUE",
        "normalize|cosine_similarity|margin_loss|layer_norm|group_norm|batch_norm|var|std|norm",
        "values",
        "numbers near the type's largest: which power of them overflows first",
    ),
    Accepted("VALUE|GRADIENT", "conv_transpose|conv\\dd|interpolate", "nan", "0 times inf"),
    Accepted("VALUE|GRADIENT", "attention", "nan|values", "what is masked reaches no result"),
    Accepted("VALUE|GRADIENT", "pdist|cdist", "nan", "NaN is at distance 1 in the 0-norm"),
    Accepted("GRADIENT", "det$|^logdet", "", "a singular matrix has a gradient, its cofactors"),
    Accepted("GRADIENT", "celu|selu|elu", "nan|inf", "slopes of NaN and of infinite alphas"),
    Accepted("GRADIENT", "amin|amax|nanmean", "nan", "NaN is never the extreme, nor counted"),
    Accepted("GRADIENT", "^(sort|msort|topk)", "values", "which of equal elements it goes to"),
    Accepted("VALUE", "grid_sampl", "nan", "a point at infinity is outside"),
    Accepted("VALUE", "^resize_", "", "memory that a larger size adds is not defined"),
    Accepted("VALUE|GRADIENT", "multi_head_attention", "True|0.5", "dropout has its own numbers"),
    Accepted("VALUE", "narrow_copy", "permuted|stepped", "PyTorch ignores the strides of `out`"),
    Accepted(
        "REFUSED",
        "",
        "out=... arguments don't support automatic",
        "`out=` takes no part in a graph, whether or not there is a derivative",
    ),
    # Graphs
    Accepted(
        "ACCEPTED|HOOKS",
        "graph",
        r"(modified by an inplace.*|^\[.*)(\.mul_\(r\d| \*= r\d)",
        "a factor that is written to is kept as it was, and the gradient is right",
    ),
    Accepted(
        "VALUE",
        "graph",
        r"saved\(\): (r\d+)\.mul_\(\1\)",
        "the same; PyTorch's is wrong where hooks keep the factor itself",
    ),
    Accepted(
        "ACCEPTED",
        "graph",
        r"(second time|modified by an inplace).*inputs=\[",
        "of the graph only what leads to `inputs` runs",
    ),
    Accepted("ACCEPTED", "graph", "created in no_grad mode", "such a view stays out of the graph"),
    Accepted("ACCEPTED", "graph", "repeat_interleave", "a number is repeated along dimension 0"),
    Accepted("ACCEPTED", "graph", "INTERNAL ASSERT", "PyTorch's own error"),
    Accepted(
        "ACCEPTED",
        "graph",
        "saved tensor that has been detached in-place",
        "`detach_` leaves what was saved usable",
    ),
    Accepted(
        "REFUSED",
        "graph",
        r"modified by an inplace.*(detach_\(\)|requires_grad_\(False\))",
        "a view goes on when its base left the graph; PyTorch's loses its gradient",
    ),
    Accepted(
        "ACCEPTED",
        "graph",
        "elements of the input tensor and the written-to tensor",
        "what is read and written to is read first",
    ),
    Accepted(
        "VALUE",
        "graph",
        r"r\d+\[\d+\] np.*(unbind|diagonal|select|narrow|chunk|split|\[).*"
        r"(_\(r\d+, (alpha=)?0.5\)|\.(add|mul|sub)_\(r| [+*]= r)",
        "the same; PyTorch reads what was written already",
    ),
    Accepted("FACT", "graph", r"writes \d for \d.*Negated", "`mark_dirty` adds no second write"),
    Accepted(
        "REFUSED",
        "graph",
        "second time.*(repeat_interleave|lerp)",
        "the operator keeps a tensor where PyTorch's keeps a number",
    ),
    Accepted(
        "VALUE",
        "graph",
        r"(expand|autograd\.grad\().*median",
        "PyTorch's median of a repeated row is wrong: it reads memory that was never written",
    ),
    Accepted(
        "VALUE", "graph", r"0\.0\) for .*nan.*normalize", "the norm of zero has a second derivative"
    ),
    Accepted(
        "ACCEPTED", "graph", "second time", "a node that keeps numbers only has nothing to free"
    ),
    Accepted(
        "HOOKS",
        "graph",
        r"'node', \d.* for .*'node', \d.*(1 - r|@|\(std|var|layer_norm)",
        "how many gradients pass through a node is the affair of how the operator is made",
    ),
    Accepted("HOOKS", "graph", "cosine_similarity", "the order of the leaves"),
    Accepted(
        "ERROR_CLASS|REFUSED",
        "",
        r"indexing axis dim should be positive|index_fill_.*out of bounds for dimension \d "
        r"with size 0",
        "an index into nothing is out of range as any other",
    ),
    Accepted(
        "ERROR_CLASS",
        "graph",
        r"(Dimension out of range|0-dim tensor|too many indices).*PyTorch RuntimeError: "
        r"(A view was|Output \d of|a leaf Variable)",
        "which of two faults is told",
    ),
    Accepted(
        "FACT",
        "graph",
        r"requires_grad (True|False) for .*tensor\(\[\]",
        "of nothing there is no second derivative",
    ),
    Accepted(
        "STATE|VALUE|FACT|HOOKS",
        "graph",
        r"((un)?squeeze_|t_|transpose_)\(",
        "views, hooks and `retain_grad` stay with a tensor whose shape changes in place; with "
        "PyTorch's, some stay with what it was",
    ),
    Accepted(
        "ACCEPTED",
        "graph",
        r"(modified by an inplace|returned an invalid gradient).*((un)?squeeze_|t_|transpose_)\(",
        "a change of shape in place writes nothing",
    ),
    Accepted(
        "FACT|STATE",
        "graph",
        r"(retains_grad False for True|only PyTorch's r\d+\.grad).*detach_\(\)",
        "what `detach_` made a leaf retains nothing",
    ),
    Accepted(
        "ACCEPTED",
        "graph",
        r"no attribute 'sum'.*(detach_\(\)|requires_grad_\(False\))",
        "no hook runs after a gradient that a leaf does not want",
    ),
    Accepted(
        "REFUSED",
        "graph",
        r"register_hook.*returns mult.*(unbind|split|chunk).*register_hook.*register_hook",
        "PyTorch asks a view for its node at the first hook only",
    ),
    Accepted(
        "ACCEPTED|REFUSED",
        "graph",
        "Can't detach views|more than one element of the written-to",
        "which results are views, or are expanded, is the affair of how the operator is made",
    ),
    Accepted("PEER_DIED", "", "dies while it is written", "PyTorch crashes"),
    Accepted(
        "PEER_DIED",
        "embedding_bag|lu_unpack|ctc_loss|tril|triu|as_strided|lcm",
        "",
        "PyTorch reads or writes out of bounds, or divides by zero",
    ),
)


def reason(category: str, op: str, text: str) -> str | None:
    """Return why a difference is accepted, or None."""
    return next((a.reason for a in ACCEPTED if a.covers(category, op, text)), None)
