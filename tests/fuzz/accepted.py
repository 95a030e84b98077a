"""Differences from PyTorch that stay, each with its reason. A report counts them apart."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .calls import Call


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


FACTORS = r"linalg|qr|svd|lu|chol|geqrf|triangular|solve|eig|inverse|pinv|^det$"

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
        "conv_tbc|attention|unravel_index|argwhere|nonzero|^unique",
        "",
        "one of both gives a transposed view of what its kernel fills",
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
        r"not differentiable with respect to argument '(weight|target|pos_weight)'",
        "there is a derivative",
    ),
    Accepted(
        "REFUSED",
        FACTORS,
        r"Low precision dtypes|Expected a floating point|at least 2 dimensions",
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
    Accepted("VALUE|GRADIENT", "conv_transpose|conv\\dd|interpolate", "nan", "0 times inf"),
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
    Accepted("GRADIENT", "^(sort|msort|topk)", "values", "which of equal elements it goes to"),
    Accepted("VALUE", "grid_sampl", "nan", "a point at infinity is outside"),
    Accepted("VALUE", "^igammac?$", "nan", "of NaN and 0, NaN"),
    Accepted("VALUE", "grid_sampl", "float16", "coordinates are rounded to halves at each step"),
    Accepted("VALUE", "^resize_", "", "memory that a larger size adds is not defined"),
    Accepted("VALUE|GRADIENT", "multi_head_attention", "True|0.5", "dropout has its own numbers"),
    Accepted("VALUE", "narrow_copy", "permuted|stepped", "PyTorch ignores the strides of `out`"),
    Accepted(
        "REFUSED",
        "",
        "out=... arguments don't support automatic",
        "`out=` takes no part in a graph, whether or not there is a derivative",
    ),
    # Two faults in one call: which is told of first
    Accepted(
        "ERROR_CLASS",
        "^(std|var|mean)|_loss|cross_entropy|cdist|clamp|nanmean|(instance|batch)_norm|diff|split|rms_norm"
        "|index_copy|index_fill|norm::nuc|expand_copy|avg_pool|nearest-exact",
        "",
        "several arguments are wrong, and another is told of first",
    ),
    Accepted(
        "ERROR_CLASS",
        "max_unpool|narrow_copy|broadcast_shapes|resize_|as_strided|slice_scatter|upsample"
        "|index_select|index_reduce|combinations|fractional",
        r"tuple index out of range|Expected dim <|negative|step must be|cannot convert float"
        r"|missing 1 required|out of DATA bounds|out of bounds for dim|max_size|failed to unpack"
        r"|cannot be converted to type int64_t|array is too big|Unable to allocate",
        "an exception of PyTorch's internals, or another class for the same text elsewhere",
    ),
    Accepted(
        "ERROR_CLASS", "^(cat|[hvd]stack|stack|column_stack)", "desired output type", "as elsewhere"
    ),
    Accepted(
        "ERROR_CLASS",
        "^sign$|^linalg|^norm",
        "complex",
        "matrices of complex numbers are refused before they are looked at",
    ),
    # Nothing, and checks before it
    Accepted(
        "REFUSED",
        "",
        r"not implemented for '\w+'.*\[(\d+, )*0[],]",
        "a type without a kernel is refused when there are no elements, too",
    ),
    Accepted(
        "REFUSED",
        "^(roll|cat|diff|linalg.vecdot|cummin|cummax)",
        "Dimension out of range",
        "dimensions are checked although nothing is done",
    ),
    Accepted(
        "REFUSED",
        "lu_solve|grid_sampler|ctc_loss|fractional_max_pool|embedding_bag|histogram|unfold|matmul"
        "|^bmm|solve_triangular|unravel_index",
        "LU_pivots must|unknown (interpolation|padding)|targets must|must be greater than zero"
        r"|scalar types: Long, Int|same shape and dtype|size\w* (calculation )?overflow"
        "|expected scalar type|offsets must not decrease|to have the same dtype",
        "PyTorch does not check, and reads what is not there, or there is nothing to do",
    ),
    Accepted(
        "REFUSED",
        "adaptive",
        "can't allocate memory",
        "memory is asked for also where a batch of nothing needs none",
    ),
    Accepted(
        "ACCEPTED",
        "pool|norm|conv|roll",
        r"non-zero size for non-batch|index 0 out of range for tensor of size \[0|non-empty 2D"
        r"|Expected reduction dim",
        "no channels or no elements: an empty result",
    ),
    Accepted("ACCEPTED", "", "INTERNAL ASSERT FAILED", "PyTorch's own mistake"),
    # Arguments
    Accepted(
        "REFUSED",
        "^__r",
        r"expected (at least )?1 argument|missing 1 required positional|unexpected keyword",
        "a reflected operator needs its operand",
    ),
    Accepted(
        "REFUSED", "hardtanh", "unsigned type with negative limits", "a limit above -1 is no zero"
    ),
    Accepted(
        "REFUSED",
        "native_batch_norm|multi_margin_loss",
        "should contain|expected scalar type Long",
        "sizes and types that PyTorch does not look at where it need not",
    ),
    Accepted("ERROR_CLASS", "multi_head_attention", "not enough values to unpack", "Python's"),
    Accepted(
        "REFUSED",
        "^signal.windows",
        "'(None|float)' (is not an instance|object cannot be)",
        "None is no bool, and 1.0 no number of points",
    ),
    Accepted(
        "REFUSED",
        "cross_entropy",
        "label_smoothing must be|expected scalar type",
        "what PyTorch does not look at: weights of nothing, less than nothing to smooth",
    ),
    Accepted("ACCEPTED", "^roll$", "to contain only concrete integers", "PyTorch's own error"),
    Accepted("WRITE", "^(cov|corrcoef)$", "", "PyTorch subtracts the mean in its argument"),
    Accepted("ALIAS", "sum_to_size", "int64", "a sum of one element of its type is that element"),
    Accepted(
        "ACCEPTED",
        "bce|cross_entropy",
        "can't be cast to|expected linear_bias shape",
        "the target's type is its own; elements count, not how they are arranged",
    ),
    Accepted(
        "REFUSED",
        "max_unpool|fractional_max_pool|interpolate|^full|^fill",
        "invalid max index|pool size .* too large|not implemented for|without overflow",
        "indices, sizes, types and numbers that PyTorch checks only where there are elements, or "
        "dimensions, or not at all",
    ),
    Accepted(
        "VALUE",
        "cross_entropy",
        r"for np.float\d+\(nan\)|nan.* for np.float16",
        "the mean of losses over no classes is 0; which factor of a product overflows first",
    ),
    Accepted("VALUE", "^multinomial$", "", "which of the impossible is drawn when all else is"),
    Accepted("VALUE", "trapezoid", "values", "which sum overflows first"),
    Accepted(
        "VALUE",
        "graph",
        r"cosine_similarity\((r\d+), .*masked_fill_\(r\d+ > 0",
        "a comparison of what is rounding alone with zero",
    ),
    Accepted(
        "ACCEPTED",
        "conv|shrink|_cell$|embedding_bag",
        r"1099511627776|for input dtype|can't be cast to|per_sample_weights",
        "numbers that do not fit PyTorch's kernel, more types, and arguments in the old order",
    ),
    Accepted(
        "REFUSED",
        "^lstm$|^gru$|^rnn|attention|ctc_loss|^conv_tbc|conv\\dd|nn.functional.conv",
        r"expected \w+ of size|dropout probability|integral vectors|at least 1 at|bias type",
        "sizes, numbers and types that PyTorch does not look at",
    ),
    Accepted(
        "REFUSED",
        FACTORS,
        "(not positive-definite|is singular).*(values|stride=.*0)",
        "a pivot that is zero, or by rounding nearly",
    ),
    Accepted(
        "ACCEPTED",
        "interpolate|linalg.matrix_rank|normal|nonzero|take|random",
        r"TypeError: (_upsample|linalg_matrix_rank\(\)|normal_\(\)|nonzero\(\))",
        "more combinations of arguments are taken",
    ),
    Accepted(
        "ACCEPTED",
        "^index_(fill|copy|reduce|add)|^topk|nansum|bernoulli|embedding$|linalg.lu_solve",
        "Expected dtype int|Expected a long|source tensor shape|bool dtypes on CPU|complex"
        "|don't support automatic|not differentiable with respect",
        "more types are taken, and 0-d sources",
    ),
    Accepted(
        "ACCEPTED",
        "combinations|triu_indices|tril_indices|resize_|lu_solve|matmul|cholesky",
        "integer multiplication overflow|negative dimension|missing 1 required|pivots with shape"
        "|not positive-definite|must match the size",
        "an implementation's limit, or an infinite element",
    ),
    Accepted(
        "ACCEPTED",
        "select_scatter|slice_scatter|diagonal_scatter|index_put|masked_scatter",
        "Autograd not support dtype",
        "an integer result of a source with a gradient has none",
    ),
    Accepted("ACCEPTED", "lu_unpack", "out of bounds", "PyTorch reads what was never written"),
    Accepted(
        "ACCEPTED",
        "native_group_norm",
        "is_contiguous",
        "inputs of any strides are taken",
    ),
    Accepted(
        "REFUSED",
        "norm",
        "mixed dtype|bias should contain|more than one element",
        "parameters of other types or sizes, and repeated statistics, which PyTorch does not check",
    ),
    Accepted(
        "REFUSED",
        "as_strided_scatter",
        "must be contiguous and hold the region|describe overlaps itself",
        "elements outside self are no part of the result",
    ),
    Accepted(
        "REFUSED",
        "cholesky|conv_transpose|attention|addbmm|pad::circular",
        "square matrices|bias type|must match the size|broadcast shape|non-zero dimensions"
        "|nothing to repeat",
        "shapes and types that do not fit although there is nothing to compute",
    ),
    Accepted(
        "REFUSED",
        "",
        "matrices of complex numbers are not implemented|not implemented for 'Complex",
        "complex numbers that no kernel takes are refused by name",
    ),
    Accepted(
        "REFUSED",
        FACTORS + "|norm|cond|matrix_rank",
        "because the input matrix contained non-finite values",
        "refused always; with PyTorch it depends on the values and on LAPACK",
    ),
    Accepted(
        "REFUSED|ACCEPTED",
        "",
        r"(don't support automatic|refer to a single memory location).*(out=|inplace)",
        "`out=` in the memory of an operand, or of what has no derivative",
    ),
    Accepted(
        "ACCEPTED",
        "pool|pad::constant|narrow|prod|native_batch_norm|cdist|scatter|loss",
        r"smaller than kernel|too large relative|length must be non-neg|0-dim integral"
        r"|Autograd not support|at least one element|valid value for compute_mode"
        r"|automatic differentiation for outputs with complex|can't be cast to the desired",
        "more sizes, types and arguments are taken",
    ),
    Accepted(
        "ERROR_CLASS",
        "embedding_bag|interpolate|vecdot|searchsorted|group_norm|signal.windows|tensordot|conv"
        "|cummin|cummax|pad::",
        "",
        "an exception of Python's, or of another argument that is wrong as well",
    ),
    Accepted(
        "ALIAS",
        "^(long|int|short|char|byte|bool|float|double|half|bfloat16|to)$",
        "memory_format",
        "what asks for contiguous memory gets it",
    ),
    Accepted("DTYPE", "__rdiv__", "", "as any quotient of the two types"),
    # Where results go
    Accepted(
        "REFUSED",
        "",
        r"more than one element of the written-to.*(out=|inplace)",
        "elements that share memory cannot hold a result each; PyTorch sees strides of 0 only, "
        "and of reductions and products not those",
    ),
    Accepted(
        "REFUSED",
        "^(sum|nansum|prod|cumsum|cumprod|mean)",
        r"result type (Float|Double|Half|BFloat16) can't be cast",
        "sums of fractions are not cut to integers on their way",
    ),
    Accepted(
        "REFUSED",
        "cholesky_inverse|matrix_rank|matrix_power",
        "Expected out tensor to have dtype",
        "`out=` wants the result's type",
    ),
    Accepted("VALUE", "^tri[lu]$", "out=expanded", "elements share memory: the last one written"),
    Accepted(
        "VALUE",
        r"polynomial|__rdiv__|__rtruediv__|^(atan2|hypot)",
        "float64|int",
        "integers are divided, or go through a recurrence, in the result's type, not in float32",
    ),
    # What has several right answers
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
        "values",
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
    Accepted("REFUSED", "nn.functional.pad$", "_pad_circular", "nothing to repeat"),
    Accepted("VALUE|GRADIENT", "pad::circular", "-", "PyTorch reads memory that was never written"),
    Accepted(
        "GRADIENT",
        "^as_strided_scatter",
        "",
        "what is overwritten has no gradient; PyTorch's goes to the other elements",
    ),
    Accepted("GRADIENT", "^quantile|^nanquantile", "values|size", "which of equal elements"),
    Accepted("GRADIENT", "^(sort|msort|topk)", "8000", "which of equal elements it goes to"),
    Accepted(
        "GRADIENT",
        "norm|^dist$|log_ndtr|^std|^var|hardswish",
        r"nan|inf|-?\d{9,}|stride=\[0, 0\]",
        "slopes at NaN and infinity, of immense powers, and of deviations that are rounding",
    ),
    Accepted("GRADIENT", "ctc_loss", r"\([1-9] of ", "rounding of sums of 50 log-probabilities"),
    Accepted("BACKWARD_ERROR", "floor_divide", "", "it has no derivative in place, nor here"),
    Accepted(
        "BACKWARD_ERROR", "svd", "full_matrices=True|some=False", "vectors of no singular value"
    ),
    Accepted("SHAPE", "^arange", "", "how many steps beyond the type's range"),
    Accepted("REQUIRES_GRAD", "triangular_solve", "", "a copy of what needs no gradient"),
    Accepted("PEER_DIED", "narrow_copy|pool|lstm", "", "PyTorch writes out of bounds"),
    Accepted("PEER_DIED", "polynomial", "2147483648", "PyTorch takes as many steps"),
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
    Accepted(
        "ACCEPTED",
        "graph",
        r"moved into the graph interior.*detach_\(\)",
        "what `detach_` took out of the graph may be written to",
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
        "ACCEPTED|FACT",
        "graph",
        r"(Output \d of|dtype \w+ for None).*(requires_grad_\(False\)|detach_\(\))",
        "the same",
    ),
    Accepted(
        "ACCEPTED",
        "graph",
        r"(r\d+)\.copy_\(\1\): PyTorch RuntimeError: a leaf",
        "PyTorch asks whether a view is a leaf before it asks the base",
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
        r"'node', \d.* for .*'node', \d.*(1 - r|@|layer_norm)|aminmax",
        "how many gradients pass through a node is the affair of how the operator is made",
    ),
    Accepted(
        "STATE",
        "graph",
        "only ours .*Negated",
        "`retain_grad` stays with a tensor that a Function writes to",
    ),
    Accepted(
        "VALUE",
        "graph",
        r"(detach\(\)|data)(; torch\.sin|(; r\d+)?\.mul_)\((2|r\d+, out=.*)\).*backward",
        "a formula reads what was written unseen by the graph, or does not",
    ),
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
        r"register_hook.*returns mul.*(unbind|split|chunk).*register_hook.*register_hook",
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


def corrupts(call: Call) -> bool:
    """Say whether PyTorch may write out of bounds and live on, so that later calls go wrong."""
    return call.op == "lu_unpack" and any(note != "layout" for note in call.notes)


def reason(category: str, op: str, text: str) -> str | None:
    """Return why a difference is accepted, or None."""
    return next((a.reason for a in ACCEPTED if a.covers(category, op, text)), None)
