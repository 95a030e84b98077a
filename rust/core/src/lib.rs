//! Tensors with PyTorch's semantics: storage, CPU and GPU kernels, automatic differentiation.
//!
//! Modules in layers; each uses only those before it:
//!
//! * [`error`], [`dtype`], [`float8`], [`shape`], [`shared`], [`isa`], [`machine`]: words
//!   that everything else uses, and what is known of the processor; [`os`], where
//!   systems differ; [`pickle`], which uses nothing
//! * [`layout`], [`meta`], [`storage`], [`alloc`], [`device`], [`rng`], [`host`]: where elements lie; a
//!   storage on the GPU holds a buffer of [`gpu`], which knows only `error`, `dtype` and `device`
//! * [`tensor`]: a layout over a storage, with a slot for its place in a graph
//! * [`cpu`], [`gpu`]: kernels' machinery, which knows no op
//! * [`schema`], [`op`], [`dispatch`], [`transfer`], [`autograd`]: one layer, which knows ops by
//!   their traits
//! * [`ops`]: the ops, each declared in one place
//! * [`graph`]: whole steps of a program, recorded and run again; [`batch`], functions of slices that run
//!   once for all of them

// Whether what a recorded step holds of a GPU may go to another thread is asked of wgpu's types.
#![recursion_limit = "256"]
// Kernels for vectors share helpers that nothing else needs.
#![cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code, unused_imports, unused_variables)
)]

pub mod alloc;
pub mod autograd;
pub mod batch;
pub mod cpu;
pub mod device;
pub mod dispatch;
pub mod dtype;
pub mod error;
pub mod float8;
pub mod gpu;
pub mod graph;
pub mod host;
pub mod isa;
pub mod layout;
pub mod machine;
pub mod meta;
pub mod op;
pub mod ops;
pub mod os;
pub mod pickle;
pub mod rng;
pub mod schema;
pub mod shape;
pub mod shared;
pub mod storage;
pub mod tensor;
pub mod transfer;
pub mod words;
