//! Recurrent layers.

crate::entries! {}
