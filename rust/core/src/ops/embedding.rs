//! Embeddings and bags of them.

crate::entries! {}
