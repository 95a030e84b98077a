//! Linear algebra.

crate::entries! {}
