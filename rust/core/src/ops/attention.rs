//! Scaled dot-product attention.

crate::entries! {}
