//! Decompositions of matrices.

crate::entries! {}
