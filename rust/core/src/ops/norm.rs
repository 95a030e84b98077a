//! Normalisation layers.

crate::entries! {}
