//! Tensors with PyTorch's semantics: storage, CPU and GPU kernels, automatic differentiation.
//!
//! Modules in layers; each uses only those before it, [`gpu`], which is a crate too and knows no tensor, and
//! `pytensorlib-base`, whose modules have the same names here:
//!
//! * [`storage`]: memory; on the GPU it holds a buffer of [`gpu`]
//! * [`tensor`]: a layout over a storage, with a slot for its place in a graph
//! * [`cpu`]: kernels' machinery, which knows no op
//! * [`schema`], [`op`], [`dispatch`], [`transfer`], [`autograd`]: one layer, which knows ops by
//!   their traits
//! * [`ops`]: the ops, each declared in one place
//! * [`graph`]: whole steps of a program, recorded and run again; [`batch`], functions of slices that run
//!   once for all of them;
//!   [`forward`], tangents beside values

// Whether what a recorded step holds of a GPU may go to another thread is asked of wgpu's types.
#![recursion_limit = "256"]
// Kernels for vectors share helpers that nothing else needs.
#![cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code, unused_imports, unused_variables)
)]

pub use pytensorlib_base::{
    alloc, bail, compiled, device, dtype, ensure, error, float8, host, isa, layout, machine, meta,
    os, per_isa, pickle, rng, shape, shared, words,
};

pub use pytensorlib_cpu as cpu;
pub use pytensorlib_cpu::{typed, with_compute, with_element, with_float};
pub use pytensorlib_gpu as gpu;

pub mod autograd;
pub mod batch;
pub mod dispatch;
pub mod forward;
pub mod graph;
pub mod op;
pub mod ops;
pub mod schema;
pub mod storage;
pub mod tensor;
pub mod transfer;
