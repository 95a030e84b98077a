//! Several tensors into one and one into several.

crate::entries! {}
