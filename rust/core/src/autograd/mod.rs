//! Reverse-mode automatic differentiation. It knows ops only through [`crate::op::Derivative`].
//!
//! `node` is the graph, `hooks` are callbacks on it, `saved` what backward needs again, `engine`
//! the executor, `step` gradients with a slope of nothing, `inplace` the rules for modification in place and for views, `mode` the thread's
//! switches.

pub mod engine;
pub mod hooks;
pub mod inplace;
pub mod mode;
pub mod node;
pub mod saved;
pub mod step;

pub use engine::{backward, Request};
pub use hooks::Hook;
pub use node::{Backward, Edge, History, Node, Vjp};
pub use saved::Saved;
