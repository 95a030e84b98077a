//! Pooling.

crate::entries! {}
