//! Running sums, products and extrema.

crate::entries! {}
