# ruff: noqa: E501
"""The table of names that modules of PyTorch have and those here do not; see `modules.py`."""

from __future__ import annotations

from .table import (
    BY_MPI,
    EAGER,
    NO_COMPILER,
    NO_CUDA,
    NO_ONNX,
    NO_QUANTIZATION,
)

__all__ = ["NAMES"]

NO_NESTED = "there are no tensors of rows of different lengths here; torch.nn.utils.rnn.pad_sequence pads them."
NO_SEMI = (
    "there are no products with half of the weights left out here; torch.nn.utils.prune masks them."
)
NO_PIPES = "pipes are no part of the data loader here; torch.utils.data.IterableDataset is."
NO_HELPERS = "PyTorch's helpers for tests are not here; torch.testing.assert_close is."
NO_KERNEL = "it is a private part of PyTorch's kernels; call the public function."

NO_PACKAGE = "programs are not packed into archives here; torch.save keeps state_dicts."
NO_MASKED = "there are no tensors with masks here; torch.masked's functions take a mask."
NO_BACKEND = "programs bring no device of their own here."

# A module, and its names in the form of `fill`. Each line is one module; long ones go on.
NO_EXPORTED = f"of what PyTorch exports programs with this is not here: {EAGER}"

NAMES: dict[str, str] = {
    EAGER: """
        _C: Block Future ScriptDict ScriptList TensorType[get] _ScalingType
        _C: _create_function_from_graph _current_autograd_node _debug_get_fusion_group_inlining
        _C: _debug_set_autodiff_subgraph_inlining _debug_set_fusion_group_inlining
        _C: _dispatch_dump _dispatch_has_kernel_for_dispatch_key _get_autograd_fallback_mode
        _C: _get_graph_executor_optimize _ivalue_tags_match _jit_assert_is_instance
        _C: _jit_check_alias_annotation _jit_clear_class_registry
        _C: _jit_erase_non_input_shape_information _jit_get_inline_everything_mode
        _C: _jit_get_schemas_for_operator _jit_get_te_must_use_llvm_cpu
        _C: _jit_get_tracer_state_warn _jit_override_can_fuse_on_cpu_legacy
        _C: _jit_pass_canonicalize _jit_pass_constant_propagation _jit_pass_dce
        _C: _jit_pass_propagate_shapes_on_graph _jit_set_emit_hooks
        _C: _jit_set_inline_everything_mode _jit_set_num_profiled_runs
        _C: _jit_set_symbolic_shapes_test_mode _jit_set_te_must_use_llvm_cpu
        _C: _jit_set_tracer_state_warn _jit_symbolic_shapes_test_mode_enabled
        _C: _jit_texpr_fuser_enabled _jit_to_static_module _set_autograd_fallback_mode _set_conj
        _C: _set_default_mobile_cpu_allocator _set_neg _storage_Use_Count
        _C: _unset_default_mobile_cpu_allocator parse_schema
        _C._dynamo.eval_frame: _set_lru_cache
        _C._fft: fft_fftfreq fft_rfftfreq
        _C._linalg: _linalg_eigvals linalg__powsum
        _C._profiler: _ExperimentalConfig gather_traceback symbolize_tracebacks
        _decomp: core_aten_decompositions
        _dynamo.backends.common: aot_autograd
        _dynamo.compiled_autograd: _disable reset
        _dynamo.exc: BackendCompilerFailed TensorifyScalarRestartAnalysis
        _dynamo.functional_export: dynamo_graph_capture_for_export
        _dynamo.graph_deduplication: _stable_topological_sort
        _dynamo.source: ConstantSource LocalSource
        _dynamo.test_case: TestCase
        _dynamo.testing: optimize_assert reset
        _dynamo.trace_rules: _as_posix_path
        _functorch._activation_offloading.offload_ops: pinned_memory_pool
        _functorch._aot_autograd.functional_utils: from_fun to_fun
        _functorch._aot_autograd.fx_utils: get_plain_input_and_grad_nodes
        _functorch.aot_autograd: JointWithDescriptors aot_compile_joint_with_descriptors
        _functorch.aot_autograd: aot_export_joint_with_descriptors
        _functorch.compile_utils: raise_getitems
        _functorch.config: check_custom_op_aliasing=True patch
        _functorch.partitioners: _extract_fwd_bwd_outputs _extract_graph_with_inputs_outputs
        _functorch.partitioners: get_default_op_list has_recomputable_ops
        _functorch.partitioners: has_recomputable_rng_ops is_sym_node must_recompute
        _higher_order_ops: InvokeQuant invoke_quant_packed local_map_hop while_loop_stack_output
        _higher_order_ops.inline_asm_elementwise:
        _higher_order_ops.invoke_subgraph:
        _higher_order_ops.out_dtype:
        _higher_order_ops.register_hook: register_hook_op
        _inductor: aoti_compile_and_package aoti_load_package cudagraph_mark_step_begin
        _inductor: list_mode_options
        _inductor.async_compile:
        _inductor.codecache: CppCodeCache[load] extract_tensor_metadata_for_cache_key
        _inductor.codegen.common: get_custom_backend_config_for_device
        _inductor.codegen.common: get_custom_backend_pass_for_device get_scheduling_for_device
        _inductor.codegen.common: get_wrapper_codegen_for_device init_backend_registration
        _inductor.codegen.common: register_backend_for_device
        _inductor.codegen.cpp_flex_attention_template: CppFlexAttentionTemplate
        _inductor.codegen.cpp_template: CppTemplate
        _inductor.codegen.cpp_template_kernel: parse_expr_with_index_symbols wrap_with_tensorbox
        _inductor.codegen.triton: TritonOverrides
        _inductor.codegen.wrapper: PythonWrapperCodegen
        _inductor.compile_fx: shape_env_from_inputs
        _inductor.config: aten_distributed_optimizations compile_threads=2 cpp cpp_wrapper=False
        _inductor.config: max_autotune_gemm_search_space='DEFAULT' patch
        _inductor.config: post_grad_custom_pre_pass=None
        _inductor.constant_folding: constant_fold
        _inductor.cpu_vec_isa: VecAMX pick_vec_isa
        _inductor.cudagraph_trees: _use_cuda_memory_pool_manager
        _inductor.custom_graph_pass: CustomGraphModulePass CustomGraphPass get_hash_for_files
        _inductor.decomposition: register_decomposition
        _inductor.exc: CppCompileError InvalidCxxCompiler
        _inductor.freezing_utils: maybe_set_is_frozen_param
        _inductor.fx_passes.bucketing: BucketMode is_all_gather_into_tensor is_wait_tensor
        _inductor.fx_passes.control_dependencies: preserve_node_ordering
        _inductor.fx_passes.freezing_patterns: freezing_passes register_freezing_graph_pattern
        _inductor.fx_passes.micro_pipeline_tp: micro_pipeline_tp_pass
        _inductor.fx_passes.mkldnn_fusion: _gelu_fusion_1 _gelu_fusion_2 _get_remaining_users
        _inductor.fx_passes.mkldnn_fusion: _hardswish_fusion _hardtanh_fusion _silu_fusion
        _inductor.fx_passes.overlap_manual_scheduling: ManualOverlapPreservingBucketer
        _inductor.fx_passes.overlap_manual_scheduling: ManualOverlapScheduler
        _inductor.fx_passes.overlap_manual_scheduling: _move_overlap_nodes
        _inductor.fx_passes.overlap_manual_scheduling: manual_overlap_bucketing
        _inductor.fx_passes.overlap_scheduling: get_group_name is_compute_node
        _inductor.fx_passes.overlap_scheduling: schedule_overlap_bucketing
        _inductor.fx_passes.overlap_scheduling: schedule_overlap_bucketing_from_inductor_configs
        _inductor.graph: GraphLowering
        _inductor.ir: Buffer ChoiceCaller CppTemplateBuffer FixedLayout IRNode Layout
        _inductor.ir: Pointwise[create] TensorBox[create] get_fill_order
        _inductor.kernel.flex.common: construct_strides maybe_realize
        _inductor.lowering: expand lowerings register_lowering to_dtype
        _inductor.metrics: reset
        _inductor.output_code: RegionalOutputCode
        _inductor.pattern_matcher: Arg CallFunction KeywordArg Match PatternMatcherPass
        _inductor.pattern_matcher: filter_nodes register_lowering_pattern
        _inductor.runtime.cache_dir_utils: cache_dir
        _inductor.select_algorithm: DataProcessorTemplateWrapper ExternKernelChoice
        _inductor.select_algorithm: autotune_select_algorithm
        _inductor.sizevars: SizeVarAllocator
        _inductor.utils: GPU_TYPES=['cuda','mps','xpu','mtia'] OrderedSet count_tangents
        _inductor.utils: get_gpu_shared_memory get_gpu_type is_big_gpu is_gpu
        _inductor.utils: parallel_num_threads
        _inductor.virtualized: ops
        _lazy:
        _lazy.metrics:
        _lazy.ts_backend: init
        _library: register_fake_class
        _library.custom_ops: CustomOpDef
        _library.infer_schema: infer_schema
        _library.opaque_object: is_opaque_value register_opaque_type
        _library.utils: lookup_op
        _logging._internal: LogState _get_log_state _init_logs _set_log_state log_registry
        _logging._internal: log_state trace_log
        _logging.scribe: open_source_signpost
        _native.dsl_registry: dsl_registry
        _native.ops.topk.cutedsl_impl: _RADIX_MIN_N_MULTIPLIER={64:2,128:2,256:2,512:8,1024:32}
        _native.ops.topk.cutedsl_impl: _REGISTER_N_RANGE={16:(64,2048),32:(256,256)}
        _prims:
        _prims.utils: ELEMENTWISE_TYPE_PROMOTION_KIND{DEFAULT NO_OPMATH INT_TO_FLOAT ALWAYS_BOOL COMPLEX_TO_FLOAT BOOL_TO_LONG}
        _prims.utils: elementwise_dtypes
        _refs: randn where
        _refs.linalg:
        _refs.nn.functional:
        _refs.special:
        _subclasses.fake_tensor: _is_tensor_constructor
        _subclasses.meta_utils: MetaConverter[meta_tensor]
        _subclasses.schema_check_mode: SchemaCheckMode
        classes.profiler: _RecordFunction
        compiler: _is_non_strict_tracing _non_strict_tracing_context _patch_engine_backward
        functorch.dim: Tensor
        fx._graph_pickler: GraphPickler[dumps loads] Options
        fx._lazy_graph_module: _make_graph_module
        fx.experimental.symbolic_shapes: DimDynamic{DYNAMIC DUCK STATIC UNBACKED INFER_STRIDE}
        fx.experimental.symbolic_shapes: DivideByKey RelaxedUnspecConstraint ShapeEnv
        fx.experimental.symbolic_shapes: StatelessSymbolicContext StrictMinMaxConstraint
        fx.experimental.symbolic_shapes: is_nested_int
        fx.graph: _BoxedCodeGen
        fx.passes.regional_inductor: regional_inductor
        fx.passes.runtime_assert: insert_deferred_runtime_asserts
        jit: _fork _wait optimized_execution
        jit._builtins: _find_builtin
        jit._logging:
        jit._recursive: ConcreteTypeStore concrete_type_store
        jit._state: _clear_class_state
        jit.mobile: _load_for_lite_interpreter
        jit.quantized:
        profiler._utils: _init_for_cuda_graphs
        torch: AVG AggregationType AliasDb AnyType Argument ArgumentSpec AwaitType
        torch: BenchmarkConfig BenchmarkExecutionStats Block BoolType BufferDict CallStack
        torch: Capsule ClassType Code CompilationUnit CompleteArgumentSpec ComplexType
        torch: ConcreteModuleType ConcreteModuleTypeBuilder DeepCopyMemoTable
        torch: DeserializationStorageContext DeviceObjType DictType EnumType ErrorReport
        torch: ExecutionPlan FatalError FileCheck FloatType FunctionSchema FutureType Gradient
        torch: Graph GraphExecutorState IODescriptor InferredType IntType InterfaceType
        torch: JITException ListType LiteScriptModule LockingLogger ModuleDict NoneType
        torch: NoopLogger NumberType OperatorInfo OptionalType ParameterDict PyObjectType
        torch: RRefType SUM ScriptClass ScriptClassFunction ScriptDict ScriptDictIterator
        torch: ScriptDictKeyIterator ScriptList ScriptListIterator ScriptMethod
        torch: ScriptModuleSerializer ScriptObject ScriptObjectProperty
        torch: SerializationStorageContext StaticModule StreamObjType StringType SymBoolType
        torch: SymIntType TensorType ThroughputBenchmark TracingState TupleType Type UnionType
        torch: Use Value cpp fork import_ir_module import_ir_module_from_buffer
        torch: merge_type_from_type_comment parse_ir parse_schema parse_type_comment
        torch: unify_type_list wait
        utils._config_module: Config ConfigModule install_config_module
        utils._helion: has_helion
        utils._pallas: has_pallas_package has_tpu_pallas
        utils._sympy.functions: FloorDiv
        utils._sympy.numbers: IntInfinity int_oo
        utils._sympy.value_ranges: ValueRanges
        utils.checkpoint: _CachedTorchDispatchMode _CachingTorchDispatchMode
        utils.collect_env: get_nvidia_driver_version
        utils.cpp_extension: CUDA_HOME=None get_default_build_root
        utils.flop_counter: _unpack_flash_attention_nested_shapes
        utils.viz._cycles: warn_tensor_cycles
        utils.throughput_benchmark: ThroughputBenchmark ExecutionStats format_time
        jit._monkeytype_config: JitTypeTraceStore JitTypeTraceConfig JitTypeTraceStoreLogger
        jit._monkeytype_config: monkeytype_trace
        _meta_registrations: register_meta elementwise_meta
        _sources: SourceContext ParsedDef ErrorReport parse_def get_source_lines_and_file
        _sources: fake_range
        _higher_order_ops.out_dtype: out_dtype
        _library.infer_schema: tuple_to_list
        profiler._utils: _traverse EventMetrics Interval EventKey BasicEvaluation
        profiler._utils: index_of_first_match argmax source_code_location TimelineEvent
        profiler._utils: ContextStackEntry map_recorded_events_to_aten_ops_with_stack_trace
        jit: _Await _drop _isinstance _awaitable _awaitable_nowait _awaitable_wait
        jit: run_frozen_optimizations _InsertPoint _ScriptProfile _unwrap_optional
        jit: RecursiveScriptClass ScriptWarning _get_trace_graph _unique_state_dict
        jit: TopLevelTracedModule TracedModule TracingCheckError _set_fusion_strategy
        jit: _hide_source_ranges
        nn.utils._expanded_weights: ConvPerSampleGrad EmbeddingPerSampleGrad ExpandedWeight
        nn.utils._expanded_weights: GroupNormPerSampleGrad InstanceNormPerSampleGrad
        nn.utils._expanded_weights: LayerNormPerSampleGrad LinearPerSampleGrad
        nn.utils._expanded_weights.expanded_weights_utils: ExpandedWeight is_batch_first
        nn.utils._expanded_weights.expanded_weights_utils: standard_kwargs forward_helper
        nn.utils._expanded_weights.expanded_weights_utils: _check_and_unexpand_args
        nn.utils._expanded_weights.expanded_weights_utils: maybe_scale_by_batch_size
        nn.utils._expanded_weights.expanded_weights_utils: set_grad_sample_if_exists
        nn.utils._expanded_weights.expanded_weights_utils: unpack_expanded_weight_or_tensor
        nn.utils._expanded_weights.expanded_weights_utils: sum_over_all_but_batch_and_last_n
    """,
    BY_MPI: """
        _C._distributed_c10d: AllToAllOptions AllgatherOptions AllreduceOptions BarrierOptions
        _C._distributed_c10d: BroadcastOptions FakeProcessGroup[_create_internal]
        _C._distributed_c10d: ReduceOp[AVG BAND BOR BXOR MAX MIN PRODUCT SUM]
        _C._distributed_c10d: ReduceScatterOptions Reducer ScatterOptions Store
        _C._distributed_c10d: _SymmetricMemory[has_multicast_support] _create_work_from_future
        _C._distributed_c10d: _set_thread_isolation_mode
        _C._distributed_rpc: PyRRef _is_current_rpc_agent_set
        distributed: Backend[register_backend] ProcessGroupGloo[create_device]
        distributed: ProcessGroupNCCL[Options] ProcessGroup[BackendType] ReduceOp[RedOpType]
        distributed: _DEFAULT_FIRST_BUCKET_BYTES=1048576 _compute_bucket_assignment_by_size
        distributed: _get_process_group_name _rank_not_in_group
        distributed._functional_collectives: all_gather_single_autograd
        distributed._functional_collectives: reduce_scatter_single_autograd
        distributed._local_tensor: LocalIntNode LocalTensor LocalTensorMode
        distributed._local_tensor: maybe_disable_local_tensor_mode maybe_run_for_local_tensor
        distributed._mesh_layout: _MeshLayout
        distributed._ops:
        distributed._ops.device_mesh:
        distributed._shard.sharded_tensor: rand
        distributed._shard.sharding_spec: ChunkShardingSpec EnumerableShardingSpec ShardMetadata
        distributed._shard.sharding_spec._internals: get_chunked_dim_size get_split_size
        distributed._sharded_tensor: ShardedTensor
        distributed._state_dict_utils: _gather_state_dict
        distributed._symmetric_memory: empty enable_symm_mem_for_group get_backend
        distributed._symmetric_memory: get_symm_mem_workspace is_symm_mem_enabled_for_group
        distributed._symmetric_memory: rendezvous
        distributed._tensor: DTensor[from_local]
        distributed._tensor.placement_types: TensorMeta
        distributed.algorithms.ddp_comm_hooks.quantization: quantization_perchannel_hook
        distributed.algorithms.ddp_comm_hooks.quantization: quantization_pertensor_hook
        distributed.algorithms.model_averaging.hierarchical_model_averager: HierarchicalModelAverager
        distributed.algorithms.model_averaging.utils: average_parameters
        distributed.autograd: DistAutogradContext _current_context _get_debug_info _get_max_id
        distributed.autograd: _new_context _release_context _retrieve_context
        distributed.checkpoint: HuggingFaceStorageReader HuggingFaceStorageWriter
        distributed.checkpoint._extension: ExtensionRegistry StreamTransformExtension
        distributed.checkpoint.format_utils: _load_state_dict
        distributed.checkpoint.quantized_hf_storage: QuantizedHuggingFaceStorageReader
        distributed.checkpoint.staging: DefaultStager StagingOptions
        distributed.checkpoint.state_dict: _PG='param_groups' _STATE='state' _init_optim_state
        distributed.checkpoint.state_dict_loader: _load_state_dict
        distributed.checkpoint.state_dict_saver: AsyncCheckpointerType{THREAD PROCESS}
        distributed.checkpoint.state_dict_saver: AsyncSaveResponse
        distributed.config: patch
        distributed.device_mesh: DeviceMesh[_concatenate] _register_distributed_opaque_types
        distributed.distributed_c10d: GroupName
        distributed.distributed_c10d: STORE_BASED_BARRIER_PREFIX='store_based_barrier_key'
        distributed.distributed_c10d: _CollOp _TORCHCOMM_AVAILABLE=False _get_global_rank
        distributed.distributed_c10d: _get_pg_config _register_pg_in_world
        distributed.distributed_c10d: _resolve_process_group _store_based_barrier _world
        distributed.distributed_c10d: rendezvous
        distributed.fsdp: FullyShardedDataParallel[optim_state_dict optim_state_dict_to_load rekey_optim_state_dict]
        distributed.fsdp._common_utils: TrainingState{IDLE FORWARD_BACKWARD SUMMON_FULL_PARAMS}
        distributed.fsdp._fully_shard._fsdp_common: FSDPMeshInfo ShardPlacementResult
        distributed.fsdp._fully_shard._fsdp_init: _get_mesh_info
        distributed.fsdp._fully_shard._fsdp_param_group: FSDPParamGroup[post_backward reshard unshard]
        distributed.fsdp._fully_shard._fsdp_param_group: RegisterPostBackwardFunction[backward]
        distributed.fsdp._fully_shard._fsdp_param_group: foreach_all_gather foreach_reduce
        distributed.fsdp._init_utils: NO_RESHARD_AFTER_FORWARD_STRATEGIES
        distributed.fsdp._runtime_utils: _reshard
        distributed.fsdp.fully_sharded_data_parallel: FullOptimStateDictConfig
        distributed.fsdp.fully_sharded_data_parallel: FullyShardedDataParallel[optim_state_dict optim_state_dict_to_load]
        distributed.fsdp.fully_sharded_data_parallel: ShardedOptimStateDictConfig
        distributed.nn: RemoteModule[init_from_module_rref]
        distributed.nn.api.remote_module: _REMOTE_MODULE_PICKLED_ATTRIBUTES _RemoteModule
        distributed.optim.post_localSGD_optimizer: PostLocalSGDOptimizer
        distributed.pipelining: SplitPoint{BEGINNING END}
        distributed.pipelining.microbatch: _split_block_mask
        distributed.pipelining.schedules: BACKWARD_INPUT BACKWARD_WEIGHT FORWARD FULL_BACKWARD
        distributed.pipelining.schedules: OVERLAP_F_B PipelineScheduleMulti
        distributed.pipelining.schedules: PipelineScheduleSingle REDUCE_GRAD RESHARD
        distributed.pipelining.schedules: ScheduleDualPipeV ScheduleZBVZeroBubble UNSHARD
        distributed.pipelining.schedules: _Action _PipelineContext _PipelineSchedule
        distributed.pipelining.schedules: _PipelineScheduleRuntime _wait_batch_p2p
        distributed.pipelining.schedules: get_schedule_class
        distributed.pipelining.stage: PipelineStage _normalize_model_output_as_tuple
        distributed.rpc: BackendType{TENSORPIPE} RpcBackendOptions TensorPipeAgent
        distributed.rpc: _disable_jit_rref_pickle _enable_jit_rref_pickle _get_current_rpc_agent
        distributed.rpc: _get_debug_info _init_rpc_backend _rref_context_get_debug_info
        distributed.rpc: _server_process_global_profile _set_rpc_timeout enable_gil_profiling
        distributed.rpc: get_rpc_timeout
        distributed.rpc._testing:
        distributed.rpc.api: UNSET_RPC_TIMEOUT=-1.0 _all_gather _barrier _broadcast_to_followers
        distributed.rpc.api: _default_pickler _delete_all_user_and_unforked_owner_rrefs
        distributed.rpc.api: _get_current_rpc_agent _is_current_rpc_agent_set
        distributed.rpc.api: _require_initialized _thread_local_var _use_rpc_pickler _wait_all
        distributed.rpc.api: _wait_all_workers get_worker_info
        distributed.rpc.backend_registry: BackendType{FAULTY_TENSORPIPE TENSORPIPE}
        distributed.rpc.backend_registry: construct_rpc_backend_options register_backend
        distributed.rpc.constants: DEFAULT_RPC_TIMEOUT_SEC=60.0
        distributed.rpc.functions: async_execution
        distributed.rpc.internal: PythonUDF RPCExecMode{SYNC ASYNC ASYNC_JIT REMOTE}
        distributed.rpc.internal: _build_rpc_profiling_key _internal_rpc_pickler serialize
        distributed.tensor: DTensor[_op_dispatcher from_local] DeviceMesh[_concatenate]
        distributed.tensor: Shard[local_shard_size_and_offset]
        distributed.tensor._dispatch: is_pinned_handler
        distributed.tensor._dtensor_spec: DTensorSpec ShardOrderEntry
        distributed.tensor._ops: scaled_mm_single_dim_strategy
        distributed.tensor._ops.utils: register_op_strategy
        distributed.tensor._random: manual_seed
        distributed.tensor._redistribute: redistribute_local_tensor
        distributed.tensor._sharding_prop: ShardingPropagator[_fake_mode_lock]
        distributed.tensor.debug: _clear_sharding_prop_cache
        distributed.tensor.experimental._attention: _HeadTailLoadBalancer _PTRRLoadBalancer
        distributed.tensor.experimental._attention: _context_parallel_shard
        distributed.tensor.experimental._attention: _enable_context_parallel_dispatcher
        distributed.tensor.experimental._context_parallel._attention: flex_cp_allgather
        distributed.tensor.placement_types: Shard[_local_shard_size_and_offset local_shard_size_and_offset]
        nn.parallel: DistributedDataParallel[_get_data_parallel_params]
        nn.parallel.distributed: _BucketCapacityConfig[create]
        nn.parallel.distributed: _BufferCommHookLocation{PRE_FORWARD POST_FORWARD}
        nn.parallel.distributed: _DEFAULT_BUCKET_CAP_MB=25 _MB_TO_BYTES=1048576 _MixedPrecision
        nn.parallel.distributed: _dump_DDP_relevant_env_vars
        torch:
    """,
    NO_QUANTIZATION: """
        ao.nn.intrinsic: _FusedModule
        ao.nn.intrinsic.quantized.dynamic: LinearReLU
        ao.nn.qat.modules:
        ao.nn.quantizable.modules:
        ao.nn.quantized: EmbeddingBag[from_float] Embedding[from_float] MaxPool2d
        ao.nn.quantized.modules:
        ao.ns.fx.ns_types: NSSingleResultValuesType{WEIGHT NODE_OUTPUT NODE_INPUT} NSSubgraph
        ao.ns.fx.utils: compute_sqnr
        ao.pruning: BaseSparsifier get_arg_info_from_tensor_fqn
        ao.quantization: PerChannelMinMaxObserver[with_args] QConfigMapping[from_dict]
        ao.quantization: default_dynamic_qat_qconfig default_embedding_qat_qconfig
        ao.quantization: default_per_channel_qconfig default_symmetric_qnnpack_qat_qconfig
        ao.quantization: float_qparams_weight_only_qconfig
        ao.quantization.backend_config: BackendConfig[from_dict] get_executorch_backend_config
        ao.quantization.backend_config: get_native_backend_config
        ao.quantization.backend_config.utils: get_fused_module_classes
        ao.quantization.backend_config.utils: get_pattern_to_dtype_configs
        ao.quantization.backend_config.utils: get_qat_module_classes
        ao.quantization.backend_config.utils: get_root_module_to_quantized_reference_module
        ao.quantization.fx._decomposed: _per_token_quant_qparam_dim_check
        ao.quantization.fx._decomposed: quantize_per_channel_group quantized_decomposed_lib
        ao.quantization.fx._equalize: convert_eq_obs update_obs_for_equalization
        ao.quantization.fx.custom_config: ConvertCustomConfig[from_dict] PrepareCustomConfig
        ao.quantization.fx.graph_module: _is_observed_module _is_observed_standalone_module
        ao.quantization.fx.lower_to_fbgemm: lower_to_fbgemm
        ao.quantization.fx.prepare:
        ao.quantization.fx.qconfig_mapping_utils: _compare_prepare_convert_qconfig_mappings
        ao.quantization.fx.qconfig_mapping_utils: _generate_node_name_to_qconfig
        ao.quantization.fx.qconfig_mapping_utils: _is_qconfig_supported_by_dtype_configs
        ao.quantization.fx.qconfig_mapping_utils: _update_qconfig_for_fusion
        ao.quantization.fx.qconfig_mapping_utils: _update_qconfig_for_qat
        ao.quantization.fx.utils: _get_module graph_module_from_producer_nodes
        ao.quantization.fx.utils: node_arg_is_weight
        ao.quantization.qconfig_mapping: QConfigMapping[from_dict]
        ao.quantization.quantization_mappings: get_default_dynamic_quant_module_mappings
        ao.quantization.quantization_mappings: get_default_qat_module_mappings
        ao.quantization.quantization_mappings: get_default_qconfig_propagation_list
        ao.quantization.quantize_fx: _convert_to_reference_decomposed_fx convert_to_reference_fx
        ao.quantization.utils: MatchAllNode _parent_name get_qparam_dict is_per_channel
        ao.quantization.utils: to_underlying_dtype weight_is_quantized
        torch: _fake_quantize_learnable_per_channel_affine
        torch: _fake_quantize_learnable_per_tensor_affine _make_per_tensor_quantized_tensor
        torch: fused_moving_avg_obs_fake_quant quantize_per_channel quantize_per_tensor
        torch: quantize_per_tensor_dynamic
        torch: _choose_qparams_per_tensor _convert_weight_to_int4pack
        torch: _convert_weight_to_int4pack_for_cpu _dyn_quant_matmul_4bit
        torch: _dyn_quant_pack_4bit_weight _empty_affine_quantized
        torch: _empty_per_channel_affine_quantized
        torch: _fake_quantize_per_tensor_affine_cachemask_tensor_qparams
        torch: _make_per_channel_quantized_tensor _mixed_dtypes_linear _weight_int4pack_mm
        torch: _weight_int4pack_mm_for_cpu _weight_int4pack_mm_with_scales_and_zeros
        torch: _weight_int8pack_mm _wrapped_linear_prepack _wrapped_quantized_linear_prepacked
    """,
    NO_CUDA: """
        _C: _CudaDeviceProperties _cuda_cudaCachingAllocator_is_enabled _cuda_getCompiledVersion
        _C: _cuda_getCurrentRawStream _cuda_getCurrentStream _cuda_getHipblasltVersion
        _C: _cuda_resetCublasLtWorkspaceSize _cuda_resetCublasWorkspaceSize _cuda_setDevice
        _C: _cuda_setStream
        accelerator.memory: get_memory_info
        cuda._annotate_cuda_graph_trace: annotate_trace
        cuda._graph_annotations: _is_tools_id_unavailable get_kernel_annotations mark_kernels
        cuda._memory_viz: trace_plot
        numa.binding: AffinityMode{NODE SOCKET EXCLUSIVE CORE_COMPLEX} NumaOptions
        numa.binding: _maybe_apply_numa_binding_to_current_process
        torch:
        torch: _cudnn_ctc_loss _cudnn_init_dropout_state _cudnn_rnn _cudnn_rnn_flatten_weight
        torch: _cufft_clear_plan_cache _cufft_get_plan_cache_max_size
        torch: _cufft_get_plan_cache_size _cufft_set_plan_cache_max_size _lstm_mps
        torch: _mps_convolution _mps_convolution_transpose _triton_multi_head_attention
        torch: _triton_scaled_dot_attention _use_miopen_ctc_loss
        nn.parallel._functions: Broadcast ReduceAddCoalesced Gather Scatter _get_stream
    """,
    NO_EXPORTED: """
        _export.config: patch
        _export.error: InternalError
        _export.utils: _disable_aten_to_metadata_assertions _is_cia_op
        _export.wrappers: mark_subclass_constructor_exportable_experimental
        export._trace:
        torch:
    """,
    NO_ONNX: """
        onnx.symbolic_helper: cast_pytorch_to_onnx
        onnx.symbolic_opset11: select squeeze unsqueeze
        onnx.symbolic_opset12: dropout
        onnx.symbolic_opset9: masked_fill softmax
        torch:
    """,
    NO_NESTED: """
        nested: as_nested_tensor nested_tensor nested_tensor_from_jagged to_padded_tensor
        nested._internal.nested_tensor: _tensor_symint_registry={} NestedTensor _tensor_id_counter=0
        nested._internal.nested_tensor: nested_view_from_values_offsets
        nested._internal.ops: _outer_to_inner_dim extract_kwargs
        torch: _nested_compute_contiguous_strides_offsets _nested_view_from_buffer
        torch: _nested_from_padded _nested_from_padded_and_nested_example
        torch: _nested_from_padded_tensor _nested_get_jagged_dummy _nested_get_lengths
        torch: _nested_get_max_seqlen _nested_get_min_seqlen _nested_get_offsets
        torch: _nested_get_ragged_idx _nested_get_values _nested_get_values_copy
        torch: _nested_tensor_from_mask _nested_tensor_from_mask_left_aligned
        torch: _nested_tensor_from_tensor_list _nested_tensor_softmax_with_shape
        torch: _nested_view_from_buffer_copy _nested_view_from_jagged
        torch: _nested_view_from_jagged_copy
        nested._internal.nested_tensor: jagged_from_list jagged_from_tensor_and_lengths
        nested._internal.nested_tensor: nested_from_padded buffer_from_jagged
        nested._internal.nested_tensor: nested_view_from_values_offsets_lengths
        nested._internal.nested_tensor: get_tensor_symint ViewBufferFromNested
        nested._internal.nested_tensor: ViewNestedFromBuffer
        nested: narrow masked_select
    """,
    NO_SEMI: """
        sparse: SparseSemiStructuredTensorCUSPARSELT[_DTYPE_SHAPE_CONSTRAINTS]
        sparse: SparseSemiStructuredTensorCUTLASS[_load_dispatch_table]
        sparse: SparseSemiStructuredTensor[_DEFAULT_ALG_ID] to_sparse_semi_structured
        sparse._triton_ops: broadcast_batch_dims launch_kernel prepare_inputs
        sparse._triton_ops: ptr_stride_extractor tile_to_blocksize
        sparse._triton_ops_meta: get_meta minimize update
        torch: _cslt_compress _cslt_sparse_mm _sparse_semi_structured_apply
        torch: _sparse_semi_structured_apply_dense _sparse_semi_structured_tile
        torch: _sparse_semi_structured_addmm _sparse_semi_structured_linear
        torch: _sparse_semi_structured_mm _to_sparse_semi_structured
        sparse.semi_structured: SparseSemiStructuredTensor SparseSemiStructuredTensorCUTLASS
        sparse.semi_structured: SparseSemiStructuredTensorCUSPARSELT
        sparse.semi_structured: to_sparse_semi_structured
    """,
    NO_PIPES: """
        torch:
        utils.data.datapipes.datapipe: IterDataPipe MapDataPipe _IterDataPipeSerializationWrapper
        utils.data.datapipes.datapipe: _MapDataPipeSerializationWrapper
        utils.data.datapipes.iter: Batcher
        utils.data.datapipes.iter.combinatorics: ShufflerIterDataPipe
        utils.data.datapipes.utils.common: StreamWrapper
        utils.data.graph_settings: apply_random_seed apply_sharding apply_shuffle_settings
        utils.data.datapipes.iter: Collator Mapper Sampler Shuffler Concater Demultiplexer
        utils.data.datapipes.iter: Forker Multiplexer Zipper FileLister FileOpener Grouper
        utils.data.datapipes.iter: UnBatcher RoutedDecoder Filter ShardingFilter
        utils.data.datapipes.iter: StreamReader IterableWrapper
        utils.data.datapipes.map: Mapper Shuffler Concater Zipper Batcher SequenceWrapper
        utils.data.datapipes.utils.common: validate_input_col _is_local_fn
        utils.data.datapipes.utils.common: _check_unpickable_fn match_masks
        utils.data.datapipes.utils.common: get_file_pathnames_from_root
        utils.data.datapipes.utils.common: get_file_binaries_from_pathnames
        utils.data.datapipes.utils.common: validate_pathname_binary_tuple
    """,
    NO_HELPERS: """
        testing: FileCheck
        testing._comparison: BooleanPair NonePair NumberPair Pair TensorLikePair
        testing._comparison: _unwrap_dtensor_for_comparison not_close_error_metas
        testing._utils: freeze_rng_state wrapper_set_seed
        torch:
        testing._comparison: ErrorMeta default_tolerances get_tolerances
        testing._comparison: _make_bitwise_mismatch_msg _make_mismatch_msg
        testing._comparison: make_scalar_mismatch_msg make_tensor_mismatch_msg
        testing._comparison: UnsupportedInputs ObjectPair originate_pairs
    """,
    NO_KERNEL: """
        _C._nn: _conv_depthwise2d _pad_circular _pad_enum _test_ambiguous_defaults
        _C._nn: _test_optional_filled_intlist _test_optional_floatlist _test_optional_intlist
        _C._nn: _test_string_default _test_warn_in_autograd _upsample_lanczos2d_aa
        _C._nn: conv_depthwise3d flatten_dense_tensors mkldnn_linear
        _C._nn: mkldnn_reorder_conv2d_weight mkldnn_reorder_conv3d_weight rrelu_with_noise
        _C._nn: rrelu_with_noise_ slow_conv3d slow_conv_dilated2d slow_conv_dilated3d
        _C._nn: slow_conv_transpose2d slow_conv_transpose3d thnn_conv2d unflatten_dense_tensors
        backends.python_native: all_dsls=['cutedsl','triton'] available_dsls=['triton']
        backends.xnnpack: enabled=False
        nn.attention.experimental._scaled_dot_product_attention_quantized: _scaled_dot_product_attention_quantized
        nn.attention.flex_attention: BlockMask[_flatten _flatten_with_keys _unflatten]
        nn.attention.flex_attention: _MaskModWrapper _create_empty_block_mask
        nn.attention.flex_attention: _mask_mod_signature _score_mod_signature
        nn.functional: scaled_grouped_mm
        torch: _scaled_grouped_mm
        torch: _add_batch_dim _amp_foreach_non_finite_check_and_unscale_ _amp_update_scale_
        torch: _batch_norm_impl_index _chunk_cat _coalesce _copy_from _copy_from_and_resize
        torch: _ctc_loss _cummax_helper _cummin_helper _fill_mem_eff_dropout_mask_
        torch: _flash_attention_forward_no_dropout_inplace _from_blob _functional_assert_scalar
        torch: _functional_sym_constrain_range _functional_sym_constrain_range_for_size
        torch: _fused_adagrad_ _fused_adam_ _fused_adamw_ _fused_dropout
        torch: _fused_moving_avg_obs_fq_helper _fused_sdp_choice _fused_sgd_ _fw_primal_copy
        torch: _histogramdd_bin_edges _histogramdd_from_bin_cts _histogramdd_from_bin_tensors
        torch: _indices_copy _linalg_check_errors _linalg_solve_ex _log_softmax _make_dep_token
        torch: _make_dual_copy _mkldnn_reshape _mkldnn_transpose _mkldnn_transpose_
        torch: _native_batch_norm_legit _native_batch_norm_legit_no_training
        torch: _native_multi_head_attention _nnpack_spatial_convolution _philox_key_fold_in
        torch: _philox_key_split _philox_normal_ _philox_uniform_ _propagate_xla_data
        torch: _remove_batch_dim _reshape_alias_copy _resize_output_ _rowwise_prune
        torch: _saturate_weight_to_fp16 _scaled_dot_product_attention_math_for_mps
        torch: _scaled_dot_product_cudnn_attention _scaled_dot_product_efficient_attention
        torch: _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu
        torch: _scaled_grouped_mm_v2 _scaled_mm_v2 _sobol_engine_draw _sobol_engine_ff_
        torch: _sobol_engine_initialize_state_ _sobol_engine_scramble_ _softmax
        torch: _transformer_encoder_layer_fwd _unsafe_masked_index
        torch: _unsafe_masked_index_put_accumulate _values_copy
    """,
    NO_PACKAGE: """
        package: PackageExporter PackageImporter EmptyMatchError PackagingError Importer
        package: OrderedImporter ObjMismatchError ObjNotFoundError Directory GlobGroup
        package: sys_importer is_from_package
    """,
    NO_MASKED: """
        masked: MaskedTensor as_masked_tensor is_masked_tensor masked_tensor
        masked.maskedtensor: MaskedTensor is_masked_tensor
        masked.maskedtensor.core: MaskedTensor is_masked_tensor _masks_match _tensors_match
        masked.maskedtensor.core: _map_mt_args_kwargs _wrap_result _get_data _maybe_get_mask
        masked.maskedtensor.creation: as_masked_tensor masked_tensor
    """,
    NO_BACKEND: """
        utils.backend_registration: rename_privateuse1_backend
        utils.backend_registration: generate_methods_for_privateuse1_backend
        utils.backend_registration: _setup_privateuseone_for_python_backend
        utils: rename_privateuse1_backend generate_methods_for_privateuse1_backend
    """,
    NO_COMPILER: """
        utils.cpp_extension: _find_cuda_home get_cxx_compiler check_compiler_ok_for_platform
        utils.cpp_extension: check_compiler_is_gcc remove_extension_h_precompiler_headers
        utils.cpp_extension: _jit_compile is_ninja_available _get_cuda_arch_flags
        utils.cpp_extension: _get_build_directory _get_num_workers _run_ninja_build
        utils.cpp_extension: _get_exec_path _import_module_from_library _write_ninja_file
        utils.cpp_extension: _join_cuda_home
    """,
}
