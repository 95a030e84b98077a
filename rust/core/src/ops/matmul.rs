//! Matrix products.

crate::entries! {}
