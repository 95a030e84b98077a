//! Reverse-mode automatic differentiation. It knows ops only through [`crate::op::Derivative`].
//!
//! `node` is the graph, `saved` what backward needs again, `engine` the executor, `inplace` the
//! rules for modification in place and for views, `mode` the thread's switches.

pub mod engine;
pub mod inplace;
pub mod mode;
pub mod node;
pub mod saved;

pub use engine::{backward, Request};
pub use node::{Backward, Edge, Hook, Meta, Node, Vjp};
pub use saved::Saved;
