//! Convolutions, forward and both backward passes.

crate::entries! {}
