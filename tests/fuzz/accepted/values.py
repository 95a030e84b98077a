"""Numbers, types, shapes and gradients of results."""

from __future__ import annotations

from .entry import Accepted

VALUES: tuple[Accepted, ...] = (
    Accepted("VALUE", "^(normal|randn|rand)", "out=(permuted|stepped)", "drawn in logical order"),
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
        r"^(special\.)?(i0|i1|i0e|i1e|modified_bessel|scaled_modified|bessel|airy)",
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
    Accepted(
        "VALUE|GRADIENT",
        "conv_transpose|conv\\dd|conv_tbc|interpolate|upsample",
        "nan",
        "0 times inf",
    ),
    Accepted("VALUE|GRADIENT", "attention", "nan|values", "what is masked reaches no result"),
    Accepted("VALUE|GRADIENT", "pdist|cdist", "nan", "NaN is at distance 1 in the 0-norm"),
    Accepted("GRADIENT", "det$|^logdet", "", "a singular matrix has a gradient, its cofactors"),
    Accepted("GRADIENT", "celu|selu|elu", "nan|inf", "slopes of NaN and of infinite alphas"),
    Accepted("GRADIENT", "^atan2$", "uint8", "PyTorch squares within the byte"),
    Accepted("GRADIENT", "^(scatter|index)_reduce", "nan", "NaN is never the extreme"),
    Accepted(
        "GRADIENT",
        "hard(tanh|shrink)",
        "values",
        "the slope at NaN, which PyTorch's vectors and what is left over after them tell apart",
    ),
    Accepted(
        "VALUE",
        "^(cov|corrcoef)$",
        "int64.*values",
        "integers are summed as floating numbers, not until they wrap",
    ),
    Accepted(
        "VALUE",
        "airy_ai|bessel_[jy]",
        "int",
        "integers have the accuracy of their float32; PyTorch's phase is rounded",
    ),
    Accepted(
        "VALUE", "multi(label)?_margin_loss", r"\[0, ", "PyTorch's loss of nothing is never written"
    ),
    Accepted(
        "VALUE",
        "^(std|var)",
        "inf.* for .*nan.*correction=",
        "the square of a rounding error, over no freedom",
    ),
    Accepted("GRADIENT", "amin|amax|nanmean", "nan", "NaN is never the extreme, nor counted"),
    Accepted("GRADIENT", "softsign", "", "PyTorch's parts cancel where an element is large"),
    Accepted("GRADIENT", "^(sort|msort|topk)", "values", "which of equal elements it goes to"),
    Accepted("VALUE", "grid_sampl", "nan", "a point at infinity is outside"),
    Accepted("VALUE", "^igammac?$", "nan", "of NaN and 0, NaN"),
    Accepted("VALUE", "grid_sampl", "float16", "coordinates are rounded to halves at each step"),
    Accepted("VALUE|GRADIENT", "multi_head_attention", "True|0.5", "large terms that cancel"),
    Accepted("VALUE", "narrow_copy", "permuted|stepped", "PyTorch ignores the strides of `out`"),
    Accepted(
        "VALUE",
        "cross_entropy",
        r"for np.float\d+\(nan\)|nan.* for np.float16",
        "the mean of losses over no classes is 0; which factor of a product overflows first",
    ),
    Accepted("VALUE", "^multinomial$", "", "which of the impossible is drawn when all else is"),
    Accepted("VALUE", "trapezoid", "values", "which sum overflows first"),
    Accepted("DTYPE", "__rdiv__", "", "as any quotient of the two types"),
    Accepted("VALUE", "^tri[lu]$", "out=expanded", "elements share memory: the last one written"),
    Accepted(
        "VALUE",
        r"polynomial|__rdiv__|__rtruediv__|^(atan2|hypot)",
        "float64|int",
        "integers are divided, or go through a recurrence, in the result's type, not in float32",
    ),
    Accepted(
        "VALUE|GRADIENT",
        r"^(linalg\.)?(qr|svd|svdvals|pinv|inv|inv_ex|det|cond|multi_dot|matrix_power)$|pinverse"
        r"|cholesky_inverse|linalg.lu|eigh|eigvalsh|logdet|slogdet|solve",
        r"values|stride=\[[^]]*\b0\b|stride=\[(1, )+|size \d+ to|shape: (resize|ones|drop)",
        "matrices that are singular, have infinite elements or repeated eigenvalues, or that "
        "rounding alone makes regular",
    ),
    Accepted(
        "VALUE|GRADIENT",
        "^(addbmm|addmm|baddbmm|bmm|mm|matmul|cross|linalg.cross|cumprod|prod|pow|linalg.vecdot)",
        r"values|(alpha|beta)=-?(inf|nan)",
        "where an infinity meets zero, or a sum overflows, depends on the order",
    ),
    Accepted("VALUE", "^(gcd|lcm)$", "values", "the least integer has no absolute value"),
    Accepted("VALUE|SHAPE", "^(mode|unique)", "values|nan", "NaN equals nothing, or itself"),
    Accepted("VALUE", "median", r"stride=\[[^]]*\b0\b", "PyTorch's of repeated rows is wrong"),
    Accepted("VALUE", "^(r?sub)$", "alpha=-9223372036854775808", "it has no negative in 64 bits"),
    Accepted("VALUE", "native_layer_norm", r"\[1, 0\]|\(0,\)", "the mean of nothing is NaN"),
    Accepted("GRADIENT", "^logit$|^polar$", "values", "slopes at 0 and at infinity"),
    Accepted("SHAPE", "attention", r"\[0, ", "nothing broadcasts with what it is added to"),
    Accepted("SHAPE", "^addmv$", r"\b0\]", "an empty product has the broadcast shape, too"),
    Accepted(
        "VALUE", "native_group_norm", "stride=", "PyTorch reads weight and bias as if contiguous"
    ),
    Accepted(
        "VALUE",
        "(hinge|cosine)_embedding_loss",
        "uint8",
        "no target of bytes is -1",
    ),
    Accepted(
        "VALUE",
        "fractional_max_pool",
        "bfloat16|float16",
        "where windows begin is computed in float32",
    ),
    Accepted("VALUE|GRADIENT", "pad::circular", "-", "PyTorch reads memory that was never written"),
    Accepted(
        "GRADIENT",
        "^as_strided_scatter",
        "",
        "what is overwritten has no gradient; PyTorch's goes to the other elements",
    ),
    Accepted("GRADIENT", "^quantile|^nanquantile", "values|size", "which of equal elements"),
    Accepted("GRADIENT", "softsign", "", "PyTorch's parts cancel where an element is large"),
    Accepted("GRADIENT", "^(sort|msort|topk)", "8000", "which of equal elements it goes to"),
    Accepted(
        "GRADIENT",
        "norm|^dist$|pairwise_distance|log_ndtr|^std|^var|hardswish",
        r"nan|inf|-?\d{9,}|\de\+\d\d|stride=\[0, 0\]",
        "slopes at NaN and infinity, of immense powers, and of deviations that are rounding",
    ),
    Accepted("GRADIENT", "ctc_loss", r"\([1-9] of ", "rounding of sums of 50 log-probabilities"),
    Accepted("BACKWARD_ERROR", "floor_divide", "", "it has no derivative in place, nor here"),
    Accepted(
        "BACKWARD_ERROR", "svd", "full_matrices=True|some=False", "vectors of no singular value"
    ),
    Accepted("SHAPE", "^arange", "", "how many steps beyond the type's range"),
    Accepted("REQUIRES_GRAD", "triangular_solve", "", "a copy of what needs no gradient"),
    Accepted(
        "VALUE|GRADIENT",
        "grid_sampl",
        "(border|reflection|, [12], (True|False)).*values",
        "NaN is at the first element; PyTorch's kernels take either end, or read out of bounds",
    ),
    Accepted(
        "VALUE",
        "matrix_rank",
        r"tol=1e-40",
        "a tolerance below rounding counts singular values that are rounding alone",
    ),
    Accepted(
        "GRADIENT",
        "^corrcoef$",
        r", 2\]",
        "two points always correlate: the gradient is rounding",
    ),
    Accepted(
        "VALUE",
        "^(all|any)$",
        "out=dtype:uint8",
        "whether a fraction is zero is asked before it is cut to a byte",
    ),
    Accepted(
        "VALUE",
        "max_pool",
        r"int64\(-1\) for",
        "the maximum over padding alone is at index -1",
    ),
    Accepted(
        "VALUE|GRADIENT",
        r"^linalg\.eig(vals)?$",
        "values|size|stride=",
        "eigenvalues have no order, and nearly equal ones no accuracy",
    ),
    Accepted(
        "GRADIENT",
        "^(add|sub|rsub|mul|div)$",
        r"<float32\[.*<float64\[\]",
        "the gradient of a number is a sum in the result's type",
    ),
)
