//! Softmax and its logarithm.

crate::entries! {}
