//! Sorting and selection.

crate::entries! {}
