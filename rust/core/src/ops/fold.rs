//! Sliding windows: `unfold`, `fold`, pixel shuffles.

crate::entries! {}
