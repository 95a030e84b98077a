"""The table of PyTorch's names that are absent, with the reason and the nearest name."""

from __future__ import annotations

from functools import cache
from typing import Any

__all__ = ["GROUPS", "LATER", "attach", "reasons", "why"]

NO_GRAPHS = "torch.compile records calls as they run, and runs them again"
GRAPHS = "torch.fx, torch.export, torch.onnx.export and torch.compile"
NO_CUDA = 'GPUs of every maker are device "wgpu" (torch.wgpu)'

# A reason, and what is nearest, for each group of names. `place: names` are names in a module or
# class; words without a colon are places where whatever PyTorch has and is missing here belongs
# to the group.
GROUPS: dict[tuple[str, str], str] = {
    ("there is no TorchScript compiler", NO_GRAPHS): """
        torch.jit torch.utils.jit torch.utils.bundled_inputs torch.utils.mobile_optimizer
        torch.utils.model_dump torch.utils.show_pickle
    """,
    ("of what PyTorch compiles and traces programs with this is not here", GRAPHS): """
        torch.compiler torch.export torch.fx torch.nativert torch.onnx torch.utils.debug_log
        torch: sym_constrain_range sym_constrain_range_for_size
        torch: sym_fresh_size
    """,
    ("there is one way into an operator, which has no keys", "torch.library.custom_op"): """
        torch: DispatchKey DispatchKeySet ExcludeDispatchKeyGuard
        torch.overrides: enable_reentrant_dispatch
        torch.utils.cpp_backtrace
    """,
    (
        "of what PyTorch builds on communication between processes this is not here",
        "torch.distributed's functions and DistributedDataParallel, over MPI",
    ): """
        torch.distributed torch.monitor torch.utils.file_baton
        torch: is_distributed
        torch.Tensor: is_distributed
    """,
    ("there are no quantized tensors", "model.to(torch.bfloat16) or .half()"): """
        torch.ao torch.quantization torch.nn.intrinsic torch.nn.qat torch.nn.quantizable
        torch.nn.quantized
        torch: choose_qparams_optimized dequantize empty_quantized
        torch: int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale
        torch: q_zero_point
        torch: quantized_batch_norm quantized_gru quantized_gru_cell quantized_lstm
        torch: quantized_lstm_cell quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d
        torch: quantized_rnn_relu_cell quantized_rnn_tanh_cell
        torch.Tensor: dequantize int_repr q_per_channel_axis q_per_channel_scales
        torch.Tensor: q_per_channel_zero_points q_scale q_zero_point qscheme
        torch.nn.functional: scaled_grouped_mm
    """,
    ("the kernels are this package's own", "the operator by its plain name, such as conv2d"): """
        torch: batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt
        torch: batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_stats
        torch: batch_norm_update_stats cudnn_affine_grid_generator cudnn_batch_norm
        torch: cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu
        torch: cudnn_convolution_transpose cudnn_grid_sampler cudnn_is_acceptable
        torch: fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation
        torch: fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation
        torch: fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16
        torch: fbgemm_pack_quantized_matrix miopen_batch_norm miopen_convolution
        torch: miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose
        torch: miopen_ctc_loss miopen_depthwise_convolution miopen_rnn mkldnn_adaptive_avg_pool2d
        torch: mkldnn_convolution mkldnn_linear_backward_weights mkldnn_max_pool2d
        torch: mkldnn_max_pool3d mkldnn_rnn_layer native_norm
        torch: is_vulkan_available
        torch.Tensor: to_mkldnn
        torch.backends torch.utils.mkldnn torch.nn.backends
    """,
    ("its device is not supported", NO_CUDA): """
        torch.accelerator torch.cpu torch.mtia
        torch: get_autocast_ipu_dtype
        torch: get_autocast_xla_dtype is_autocast_ipu_enabled is_autocast_xla_enabled
        torch: set_autocast_ipu_dtype set_autocast_ipu_enabled set_autocast_xla_dtype
        torch: set_autocast_xla_enabled
        torch.Tensor: ipu mtia
        torch.profiler.itt torch.utils.collect_env
        torch.autograd.profiler_util: EventMetadata
    """,
    ("there are no tensors of rows of different lengths", "torch.nn.utils.rnn.pad_sequence"): """
        torch.Tensor: to_padded_tensor
    """,
    ("there are no tensors with masks", "torch.where and Tensor.masked_fill"): """
        torch.masked
    """,
    ("pipes are no part of the data loader", "torch.utils.data.IterableDataset"): """
        torch.utils.data.datapipes torch.utils.data.graph torch.utils.data.graph_settings
        torch.utils.data.backward_compatibility
        torch.utils.data: DFIterDataPipe DataChunk argument_validation
        torch.utils.data: guaranteed_datapipes_determinism non_deterministic
        torch.utils.data: runtime_validation runtime_validation_disabled
    """,
    ("it builds or packs programs", "torch.library.custom_op, torch.save"): """
        torch.package torch.utils.hipify
        torch.utils.backcompat torch.contrib torch.utils.serialization
    """,
    ("PyTorch gave it up", "Tensor.reshape, Tensor.requires_grad_, torch.distributions"): """
        torch.Tensor: reinforce resize resize_as volatile
    """,
    ("dimensions have no names", "positions, or einops"): """
        torch.Tensor: index name
    """,
}
# What is still to be written; this list may only become shorter.
LATER = """
    torch.nn.attention.experimental torch.nn.modules.linear_cross_entropy torch.profiler
    torch.multiprocessing torch.utils.tensorboard torch.utils.benchmark
"""
UNWRITTEN = ("it is not written yet", "what `dir` of the module shows")


def spelled_out(text: str) -> list[str]:
    """Return the full names of a group, without ``torch``."""
    names = []
    for line in text.strip().splitlines():
        place, colon, members = line.strip().partition(":")
        names += [f"{place}.{name}" for name in members.split()] if colon else place.split()
    return [name.partition(".")[2] for name in names]


@cache
def reasons() -> dict[str, tuple[str, str]]:
    """Return the reason, and what is nearest, for each entry of the table."""
    table = {name: reason for reason, text in GROUPS.items() for name in spelled_out(text)}
    return dict.fromkeys(spelled_out(LATER), UNWRITTEN) | table


def why(fullname: str) -> str | None:
    """Return why a name of PyTorch's is not here, and what is nearest; None of other names."""
    known, name = reasons(), fullname.partition(".")[2]
    path = name
    while path and path not in known:
        path = path.rpartition(".")[0]
    if not path:
        return None
    reason, nearest = known[path]
    return f"torch.{name} is not in pytensorlib: {reason}; nearest: {nearest}"


class Missing:
    """An attribute of tensors that PyTorch has: it says why it is not here."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, obj: Any, owner: type | None = None) -> Any:
        reason = why(f"torch.Tensor.{self.name}")
        text = f"'Tensor' object has no attribute {self.name!r}: {reason}"
        raise AttributeError(text, name=self.name, obj=obj)


def attach(tensor: type) -> None:
    """Let the class of tensors say what it lacks; what it has is looked up as before."""
    for full in reasons():
        place, _, name = full.rpartition(".")
        if place == "Tensor" and not hasattr(tensor, name):
            missing = Missing()
            missing.__set_name__(tensor, name)
            setattr(tensor, name, missing)

    def __dir__(self: Any) -> list[str]:  # noqa: N807
        names = object.__dir__(self)
        return [name for name in names if not isinstance(vars(tensor).get(name), Missing)]

    tensor.__dir__ = __dir__  # type: ignore[method-assign, assignment]
