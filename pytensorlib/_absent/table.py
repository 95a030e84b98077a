"""The table of modules of which nothing is here; see `modules.py`."""

from __future__ import annotations

from .modules import Part

BY_MPI = (
    "processes communicate by torch.distributed's functions over MPI here; of what PyTorch builds "
    "on them this is not here. Guard the call with torch.distributed.is_initialized()."
)
EAGER = (
    "programs run eagerly here; of PyTorch's compilers and tracers this is not here. torch.fx and "
    "torch.export make graphs of programs."
)
NO_QUANTIZATION = (
    "there are no quantized tensors here; float16 and bfloat16 halve a model's memory: "
    "model.to(torch.bfloat16)."
)
NO_ONNX = (
    "of PyTorch's older exporters to ONNX this is not here; torch.onnx.export writes modules, and "
    "its custom_translation_table operators of a program's own."
)
NO_CUDA = 'there is no CUDA here; GPUs of every vendor are device "wgpu".'
NO_XPU = NO_CUDA.replace("CUDA", 'device "xpu"')
NO_MPS = NO_CUDA.replace("CUDA", 'device "mps"')
NO_MTIA = NO_CUDA.replace("CUDA", 'device "mtia"')
_ANSWERS = (
    ' They answer as "{0}" in `python -m pytensorlib --gpu-as {0} script.py`, or under the '
    "environment variable PYTENSORLIB_GPU_AS={0}."
)
NO_CUDA, NO_XPU, NO_MPS = (
    why + _ANSWERS.format(kind)
    for why, kind in ((NO_CUDA, "cuda"), (NO_XPU, "xpu"), (NO_MPS, "mps"))
)
NO_COMPILER = "there is no compiler for C++ or CUDA extensions here; torch.library.custom_op makes "
NO_COMPILER += "an operator of a Python function."

_PLACEMENTS = "Placement Shard Replicate Partial _StridedShard "
_DTENSOR = (
    _PLACEMENTS + "DTensor DeviceMesh distribute_tensor distribute_module init_device_mesh empty "
    "full ones rand randn zeros "
)
_WRAPPED = (
    "ColwiseParallel RowwiseParallel SequenceParallel PrepareModuleInput PrepareModuleOutput "
    "PrepareModuleInputOutput ParallelStyle parallelize_module loss_parallel "
)
_READERS = (
    "FileSystemReader FileSystemWriter StorageReader StorageWriter LoadPlanner SavePlanner "
    "LoadPlan SavePlan ReadItem WriteItem DefaultLoadPlanner DefaultSavePlanner Metadata "
    "CheckpointException load save async_save load_state_dict save_state_dict "
)
_OBSERVERS = (
    "ObserverBase UniformQuantizationObserverBase AffineQuantizedObserverBase MinMaxObserver "
    "MovingAverageMinMaxObserver PerChannelMinMaxObserver MovingAveragePerChannelMinMaxObserver "
    "HistogramObserver FixedQParamsObserver NoopObserver PlaceholderObserver RecordingObserver "
    "ReuseInputObserver default_observer default_weight_observer default_histogram_observer "
    "default_per_channel_weight_observer default_dynamic_quant_observer default_debug_observer "
    "default_placeholder_observer default_float_qparams_observer default_reuse_input_observer "
    "default_fixed_qparams_range_0to1_observer default_fixed_qparams_range_neg1to1_observer "
    "per_channel_weight_observer_range_neg_127_to_127 weight_observer_range_neg_127_to_127 "
    "get_observer_state_dict load_observer_state_dict "
)
_FAKE = (
    "FakeQuantize FakeQuantizeBase FixedQParamsFakeQuantize FusedMovingAvgObsFakeQuantize "
    "default_fake_quant default_weight_fake_quant default_dynamic_fake_quant "
    "default_fused_act_fake_quant default_fused_wt_fake_quant "
    "default_fused_per_channel_wt_fake_quant default_per_channel_weight_fake_quant "
    "disable_fake_quant disable_observer enable_fake_quant enable_observer "
)
_MAPPINGS = (
    "get_default_dynamic_quant_module_mappings get_default_static_quant_module_mappings "
    "get_default_qat_module_mappings get_default_qconfig_propagation_list "
    "get_default_compare_output_module_list get_dynamic_quant_module_class "
    "get_static_quant_module_class get_embedding_qat_module_mappings "
    "get_embedding_static_quant_module_mappings get_default_custom_config_dict "
    "get_default_static_quant_reference_module_mappings get_quantized_operator "
    "get_default_float_to_quantized_operator_mappings no_observer_set "
    "get_default_dynamic_sparse_quant_module_mappings "
    "get_default_static_sparse_quant_module_mappings "
)
_QCONFIG = (
    "QConfig QConfigDynamic QConfigMapping QConfigAny get_default_qconfig get_default_qat_qconfig "
    "get_default_qconfig_mapping get_default_qat_qconfig_mapping get_default_qconfig_dict "
    "get_default_qat_qconfig_dict qconfig_equals script_qconfig script_qconfig_dict "
    "default_dynamic_qconfig default_qconfig float16_dynamic_qconfig per_channel_dynamic_qconfig "
)
_FUSION = (
    "fuse_modules fuse_modules_qat fuse_conv_bn fuse_conv_bn_relu fuse_linear_bn "
    "fuse_convtranspose_bn get_fuser_method get_fuser_method_new fuse_conv_bn_jit "
)
_QUANTIZE = (
    "quantize quantize_dynamic quantize_qat prepare prepare_qat convert propagate_qconfig_ "
    "swap_module add_quant_dequant QuantWrapper ABC "
)
_GRAPH = (
    "quantize_jit quantize_dynamic_jit prepare_jit prepare_dynamic_jit convert_jit "
    "convert_dynamic_jit default_eval_fn prepare_fx prepare_qat_fx convert_fx fuse_fx "
)
_NOTES = (
    "Granularity PerAxis PerBlock PerGroup PerRow PerTensor PerToken MappingType{SYMMETRIC "
    "SYMMETRIC_NO_CLIPPING_ERR ASYMMETRIC} TorchAODType{INT1 INT2 INT3 INT4 INT5 INT6 INT7} "
    "ZeroPointDomain{INT FLOAT NONE} QuantType{DYNAMIC STATIC QAT WEIGHT_ONLY} get_block_size "
)

PARTS = {
    # Several processes
    "distributed._composable.replicate": Part(BY_MPI, "replicate DDP"),
    "distributed._functional_collectives": Part(
        BY_MPI,
        "AsyncCollectiveTensor all_gather_tensor all_gather_tensor_autograd all_reduce "
        "all_reduce_coalesced all_to_all_single all_to_all_single_autograd broadcast "
        "permute_tensor reduce_scatter_tensor reduce_scatter_tensor_autograd wait_tensor",
    ),
    "distributed._shard.sharded_tensor": Part(
        BY_MPI, "ShardedTensor Shard ShardMetadata ShardedTensorMetadata TensorProperties"
    ),
    "distributed._state_dict_utils": Part(BY_MPI, "_offload_state_dict_to_cpu"),
    "distributed._tensor": Part(BY_MPI, _DTENSOR),
    "distributed._tensor.api": Part(BY_MPI, "DTensor distribute_tensor distribute_module"),
    "distributed._tensor.experimental": Part(BY_MPI, "implicit_replication"),
    "distributed._tensor.placement_types": Part(BY_MPI, _PLACEMENTS + "DTensorSpec"),
    "distributed.algorithms._checkpoint.checkpoint_wrapper": Part(
        BY_MPI,
        "CheckpointImpl{REENTRANT NO_REENTRANT} CheckpointWrapper OffloadWrapper ActivationWrapper "
        "apply_activation_checkpointing checkpoint_wrapper offload_wrapper",
    ),
    "distributed.algorithms.ddp_comm_hooks.optimizer_overlap_hooks": Part(BY_MPI),
    "distributed.algorithms.ddp_comm_hooks.post_localSGD_hook": Part(
        BY_MPI, "PostLocalSGDState post_localSGD_hook"
    ),
    "distributed.algorithms.ddp_comm_hooks.powerSGD_hook": Part(
        BY_MPI, "PowerSGDState powerSGD_hook batched_powerSGD_hook"
    ),
    "distributed.algorithms.ddp_comm_hooks.quantization_hooks": Part(
        BY_MPI, "quantization_perchannel_hook quantization_pertensor_hook"
    ),
    "distributed.algorithms.model_averaging": Part(BY_MPI),
    "distributed.algorithms.model_averaging.averagers": Part(
        BY_MPI, "ModelAverager PeriodicModelAverager"
    ),
    "distributed.autograd": Part(BY_MPI, "context backward get_gradients"),
    "distributed.checkpoint._consolidate_hf_safetensors": Part(
        BY_MPI,
        "consolidate_safetensors_files consolidate_safetensors_files_on_every_rank",
    ),
    "distributed.checkpoint.default_planner": Part(
        BY_MPI, "DefaultLoadPlanner DefaultSavePlanner _EmptyStateDictLoadPlanner"
    ),
    "distributed.checkpoint.format_utils": Part(
        BY_MPI, "_EmptyStateDictLoadPlanner dcp_to_torch_save torch_save_to_dcp"
    ),
    "distributed.checkpoint.hf_storage": Part(
        BY_MPI, "HuggingFaceStorageReader HuggingFaceStorageWriter"
    ),
    "distributed.checkpoint.optimizer": Part(BY_MPI, "load_sharded_optimizer_state_dict"),
    "distributed.checkpoint.planner": Part(BY_MPI, _READERS),
    "distributed.checkpoint.utils": Part(BY_MPI),
    "distributed.device_mesh": Part(BY_MPI, "DeviceMesh init_device_mesh"),
    "distributed.elastic.agent.server.api": Part(BY_MPI, "ElasticAgent WorkerSpec WorkerGroup"),
    "distributed.c10d_logger": Part(BY_MPI, "_exception_logger _time_logger"),
    "distributed.elastic.multiprocessing.api": Part(
        BY_MPI, "PContext RunProcsResult SignalException"
    ),
    "distributed.elastic.rendezvous": Part(
        BY_MPI, "RendezvousHandler RendezvousParameters RendezvousError"
    ),
    "distributed.elastic.utils": Part(BY_MPI, "get_env_variable_or_raise"),
    "distributed.fsdp._common_utils": Part(BY_MPI, "_FSDPState _is_fsdp_flattened"),
    "distributed.fsdp._runtime_utils": Part(BY_MPI, "_lazy_init"),
    "distributed.fsdp.sharded_grad_scaler": Part(BY_MPI, "ShardedGradScaler"),
    "distributed.launcher": Part(BY_MPI, "LaunchConfig elastic_launch launch_agent"),
    "distributed.launcher.api": Part(BY_MPI, "LaunchConfig elastic_launch launch_agent"),
    "distributed.pipelining": Part(
        BY_MPI,
        "Pipe PipelineStage Schedule1F1B ScheduleGPipe ScheduleInterleaved1F1B SplitPoint "
        "pipe_split pipeline build_stage",
    ),
    "distributed.rpc": Part(
        BY_MPI,
        "RRef WorkerInfo BackendType TensorPipeRpcBackendOptions init_rpc shutdown rpc_sync "
        "rpc_async remote get_worker_info",
    ),
    "distributed.tensor": Part(BY_MPI, _DTENSOR),
    "distributed.tensor._utils": Part(BY_MPI, "compute_local_shape_and_global_offset"),
    "distributed.tensor.device_mesh": Part(BY_MPI, "DeviceMesh init_device_mesh"),
    "distributed.tensor.experimental": Part(
        BY_MPI, "context_parallel implicit_replication local_map register_sharding"
    ),
    "distributed.tensor.experimental._attention": Part(
        BY_MPI, "context_parallel set_rotate_method context_parallel_unshard"
    ),
    "distributed.tensor.parallel": Part(BY_MPI, _WRAPPED),
    "distributed.tensor.parallel.style": Part(BY_MPI, _WRAPPED),
    "distributed.tensor.placement_types": Part(BY_MPI, _PLACEMENTS),
    # Graphs of programs
    "_custom_ops": Part(NO_COMPILER, "custom_op get_ctx impl impl_abstract impl_backward"),
    "_library": Part(NO_COMPILER, "capture_triton opcheck"),
    "_prims_common": Part(EAGER, "alert_not_deterministic is_contiguous_or_false"),
    "_dynamo.backends": Part(EAGER),
    "_dynamo.backends.registry": Part(EAGER, "lookup_backend register_backend"),
    "_dynamo._trace_wrapped_higher_order_op": Part(EAGER, "TransformGetItemToIndex"),
    "_dynamo.testing": Part(EAGER, "CompileCounter CompileCounterWithBackend"),
    "_functorch": Part(EAGER),
    "_inductor": Part(EAGER, "compile aot_compile"),
    "_inductor.config": Part(EAGER),
    "jit._recursive": Part(EAGER),
    "jit._script": Part(EAGER, "RecursiveScriptModule ScriptModule ScriptFunction"),
    "jit.frontend": Part(EAGER, "NotSupportedError UnsupportedNodeError"),
    "jit.mobile": Part(EAGER),
    "utils.mobile_optimizer": Part(EAGER, "optimize_for_mobile"),
    "utils.mkldnn": Part(
        "oneDNN's layouts are not used here; the CPU kernels choose their own.", "to_mkldnn"
    ),
    "utils.cpp_extension": Part(
        NO_COMPILER,
        "BuildExtension CppExtension CUDAExtension SyclExtension load load_inline include_paths "
        "library_paths get_compiler_abi_compatibility_and_version verify_ninja_availability",
    ),
    "utils.bundled_inputs": Part(EAGER, "augment_model_with_bundled_inputs"),
    # ONNX
    "onnx._internal": Part(NO_ONNX),
    "onnx._internal.exporter": Part(NO_ONNX, "ONNXProgram"),
    "onnx.ops": Part(NO_ONNX, "symbolic symbolic_multi_out"),
    "onnx.operators": Part(NO_ONNX, "reshape_from_tensor_shape shape_as_tensor"),
    "onnx.utils": Part(NO_ONNX, "export register_custom_op_symbolic"),
    **{f"onnx.symbolic_opset{n}": Part(NO_ONNX) for n in range(7, 21)},
    # Quantization
    "ao.nn": Part(NO_QUANTIZATION),
    "ao.nn.intrinsic": Part(NO_QUANTIZATION, "ConvReLU2d ConvBn2d ConvBnReLU2d LinearReLU"),
    "ao.nn.intrinsic.qat": Part(NO_QUANTIZATION, "ConvBn2d ConvBnReLU2d LinearReLU"),
    "ao.nn.qat": Part(NO_QUANTIZATION, "Conv2d Linear Embedding"),
    "ao.nn.quantized": Part(NO_QUANTIZATION, "Conv2d Linear FloatFunctional Quantize DeQuantize"),
    "ao.nn.quantized.dynamic": Part(NO_QUANTIZATION, "Linear LSTM GRU"),
    "ao.pruning": Part(
        "there are no sparsifiers here; torch.nn.utils.prune masks weights.", "WeightNormSparsifier"
    ),
    "ao.quantization": Part(
        NO_QUANTIZATION,
        _QUANTIZE
        + _FUSION
        + _QCONFIG
        + _OBSERVERS
        + _FAKE
        + _MAPPINGS
        + _GRAPH
        + _NOTES
        + "QuantStub DeQuantStub",
    ),
    "ao.quantization.fake_quantize": Part(NO_QUANTIZATION, _FAKE),
    "ao.quantization.fuse_modules": Part(NO_QUANTIZATION, _FUSION),
    "ao.quantization.fx": Part(NO_QUANTIZATION),
    "ao.quantization.observer": Part(NO_QUANTIZATION, _OBSERVERS),
    "ao.quantization.qconfig": Part(NO_QUANTIZATION, _QCONFIG),
    "ao.quantization.qconfig_mapping": Part(NO_QUANTIZATION, _QCONFIG),
    "ao.quantization.quantize": Part(NO_QUANTIZATION, _QUANTIZE),
    "ao.quantization.quantize_fx": Part(NO_QUANTIZATION, _GRAPH),
    "ao.quantization.stubs": Part(NO_QUANTIZATION, "QuantStub DeQuantStub QuantWrapper"),
    "nn.intrinsic": Part(NO_QUANTIZATION, "ConvReLU2d ConvBn2d ConvBnReLU2d LinearReLU"),
    "nn.quantizable": Part(NO_QUANTIZATION, "LSTM MultiheadAttention"),
    "nn.quantized": Part(NO_QUANTIZATION, "Conv2d Linear FloatFunctional"),
    "quantization": Part(
        NO_QUANTIZATION,
        _QUANTIZE + _FUSION + _QCONFIG + _OBSERVERS + _FAKE + "QuantStub DeQuantStub",
    ),
}
