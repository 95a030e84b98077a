//! Padding.

crate::entries! {}
