//! Fused optimizer steps.

crate::entries! {}
