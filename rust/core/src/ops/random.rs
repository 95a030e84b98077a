//! Random numbers.

crate::entries! {}
