//! Reading and writing at computed places: gather, scatter and their kin.

crate::entries! {}
