"""Calls that PyTorch takes and we refuse."""

from __future__ import annotations

from .entry import FACTORS, Accepted

REFUSED: tuple[Accepted, ...] = (
    Accepted(
        "REFUSED", "^__r", "takes no keyword", "PyTorch's give NotImplemented for a wrong call"
    ),
    Accepted(
        "REFUSED",
        FACTORS,
        r"Low precision dtypes|Expected a floating point|at least 2 dimensions",
        "a type without a kernel is refused when there are no elements, too",
    ),
    Accepted("REFUSED", "polygamma", "below 2\\^20", "bounds the time of a series"),
    Accepted(
        "REFUSED",
        "",
        "out=... arguments don't support automatic",
        "`out=` takes no part in a graph, whether or not there is a derivative",
    ),
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
    Accepted(
        "REFUSED",
        "max_unpool|fractional_max_pool|interpolate|^full|^fill|^new_full",
        "invalid max index|pool size .* too large|not implemented for|without overflow",
        "indices, sizes, types and numbers that PyTorch checks only where there are elements, or "
        "dimensions, or not at all",
    ),
    Accepted(
        "REFUSED",
        "^lstm$|^gru$|^rnn|attention|ctc_loss|^conv_tbc|conv\\dd|nn.functional.conv",
        r"expected \w+ of size|dropout probability|integral vectors|at least 1 at|bias type"
        "|self and mat2 must have|Expected hidden size",
        "sizes, numbers and types that PyTorch does not look at",
    ),
    Accepted(
        "REFUSED",
        FACTORS,
        "(not positive-definite|is singular).*(values|stride=.*0)",
        "a pivot that is zero, or by rounding nearly",
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
        "must be contiguous and hold the region|describe overlaps itself|out of bounds for storage",
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
        "matrix_power",
        "Expected out tensor to have dtype",
        "`out=` wants the result's type",
    ),
    Accepted("REFUSED", "nn.functional.pad$", "_pad_circular", "nothing to repeat"),
    Accepted(
        "REFUSED",
        "attention",
        "batch2 tensor",
        "keys and values of different lengths, which PyTorch's fused kernel does not compare",
    ),
    Accepted(
        "REFUSED",
        "bilinear",
        "bias size does not match",
        "a bias with more dimensions, which PyTorch adds as if it were a batch",
    ),
    Accepted(
        "REFUSED",
        "conv|addmm|baddbmm|addbmm",
        r"(must have one type|expected scalar type).*\[(\d+, )*0[],]",
        "types that do not fit although there is nothing to compute",
    ),
    Accepted(
        "REFUSED",
        "^inner$",
        "not implemented for 'Bool'",
        "products of bools, which PyTorch has for some strides only",
    ),
    Accepted(
        "REFUSED",
        "__getitem__|^conv_tbc|nn.functional.conv_tbc|^tile$|^repeat$",
        "out of bounds for dimension|negative (padding|dimension)",
        "numbers out of range, also where no element is computed, or a product of them overflows",
    ),
    Accepted(
        "REFUSED",
        "^signal.windows",
        "unsupported operand type",
        "coefficients that are no numbers, also where a window of one point uses none",
    ),
    Accepted(
        "REFUSED",
        "^(lin|log)space",
        "not implemented for 'Bool'",
        "a type without a kernel is refused when there are no elements, too",
    ),
)
