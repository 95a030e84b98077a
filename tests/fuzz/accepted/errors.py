"""Errors of another class, or about another of two faults."""

from __future__ import annotations

from .entry import Accepted

ERRORS: tuple[Accepted, ...] = (
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
    Accepted("ERROR_CLASS", "multi_head_attention", "not enough values to unpack", "Python's"),
    Accepted(
        "ERROR_CLASS",
        "embedding_bag|interpolate|vecdot|searchsorted|group_norm|signal.windows|tensordot|conv"
        "|cummin|cummax|pad::",
        "",
        "an exception of Python's, or of another argument that is wrong as well",
    ),
    Accepted(
        "ERROR_CLASS|REFUSED",
        "",
        r"indexing axis dim should be positive|index_fill_.*out of bounds for dimension \d "
        r"with size 0",
        "an index into nothing is out of range as any other",
    ),
    Accepted("ERROR_CLASS", "pad_sequence", "invalid slice", "an exception of PyTorch's internals"),
)
