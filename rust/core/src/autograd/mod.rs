//! Reverse-mode automatic differentiation. It knows ops only through [`crate::op::Derivative`].
//!
//! `node` is the graph: nodes, what they save, hooks and leaves' places, which hold each other.
//! `op_node` and `accumulate` are its two kinds of node, `vjp` and `jvp` what a derivative sees, `tensor` and
//! `hooks` what can be asked of a tensor, `saved` what backward needs again, `engine` the executor, `first` what it begins with, `step` gradients with a slope
//! of nothing, `inplace` the rules for modification in place and for views, `mode` the thread's
//! switches.

mod accumulate;
pub mod engine;
mod first;
pub mod hooks;
pub mod inplace;
pub mod jvp;
pub mod mode;
pub mod node;
pub mod op_node;
pub mod saved;
pub mod step;
mod tensor;
pub mod vjp;

pub use engine::{backward, Request};
pub use first::one;
pub use jvp::{Jvp, Tangents};
pub use node::{Backward, Dual, Edge, History, Hook, Node, Saved, Tangent};
pub use vjp::Vjp;
