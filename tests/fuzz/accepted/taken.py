"""Calls that PyTorch refuses, or dies of, and we take."""

from __future__ import annotations

from .entry import Accepted

TAKEN: tuple[Accepted, ...] = (
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
        "ACCEPTED",
        "pool|norm|conv|roll",
        r"non-zero size for non-batch|index 0 out of range for tensor of size \[0|non-empty 2D"
        r"|Expected reduction dim",
        "no channels or no elements: an empty result",
    ),
    Accepted("ACCEPTED", "", "INTERNAL ASSERT FAILED", "PyTorch's own mistake"),
    Accepted("ACCEPTED", "^roll$", "to contain only concrete integers", "PyTorch's own error"),
    Accepted(
        "ACCEPTED",
        "bce|cross_entropy",
        "can't be cast to|expected linear_bias shape",
        "the target's type is its own; elements count, not how they are arranged",
    ),
    Accepted(
        "ACCEPTED",
        "conv|shrink|_cell$|embedding_bag",
        r"1099511627776|for input dtype|can't be cast to|per_sample_weights",
        "numbers that do not fit PyTorch's kernel, more types, and arguments in the old order",
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
    Accepted("PEER_DIED", "narrow_copy|pool|lstm", "", "PyTorch writes out of bounds"),
    Accepted("PEER_DIED", "polynomial", "2147483648", "PyTorch takes as many steps"),
    Accepted("PEER_DIED", "", "dies while it is written", "PyTorch crashes"),
    Accepted(
        "PEER_DIED",
        "embedding_bag|lu_unpack|ctc_loss|tril|triu|as_strided|lcm|grid_sampl|^gru",
        "",
        "PyTorch reads or writes out of bounds, or divides by zero",
    ),
    Accepted(
        "ACCEPTED",
        "^diff$",
        "start out of range",
        "differences of nothing are nothing with `out=`, too",
    ),
    Accepted(
        "ACCEPTED",
        "^normal$",
        "must match the size.*out=",
        "`out=` takes the result's shape; PyTorch draws into it as it is and then adds the mean",
    ),
    Accepted(
        "ACCEPTED",
        "^arange",
        "possible overflow",
        "the count fits; a sum on PyTorch's way to it does not",
    ),
    Accepted(
        "ACCEPTED",
        "^chunk$|tensor_split",
        "split_size can only be 0",
        "so many parts overflow PyTorch's sum",
    ),
)
