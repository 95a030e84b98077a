//! What everything else uses, and no tensor: types, shapes, memory, random numbers, errors, and what is
//! known of the processor and the system.
//!
//! Modules in layers; each uses only those before it:
//!
//! * [`error`], [`dtype`], [`float8`], [`shape`], [`shared`], [`isa`], [`machine`], [`words`]: what all
//!   speak of, and what is known of the processor; [`os`], where systems differ; [`pickle`] and [`ptr`],
//!   which use nothing
//! * [`layout`], [`meta`], [`alloc`], [`device`], [`rng`], [`host`]: where elements lie

pub mod alloc;
pub mod device;
pub mod dtype;
pub mod error;
pub mod float8;
pub mod host;
pub mod isa;
pub mod layout;
pub mod machine;
pub mod meta;
pub mod os;
pub mod pickle;
pub mod ptr;
pub mod rng;
pub mod shape;
pub mod shared;
pub mod words;
