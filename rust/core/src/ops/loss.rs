//! Losses.

crate::entries! {}
