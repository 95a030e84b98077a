//! What there is to say of an op in a word.

use super::Mask;
use crate::dtype::DType;

/// Whether an op may write to elements that share memory (an expanded tensor).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repeats {
    Refused,
    /// Every element gets one and the same value.
    Alike,
    /// Elements that share memory get the value of the one that changes.
    Changes,
}

/// What the engine may do with an op beside calling it. Most ops have [`Traits::NONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// Outputs may have any layout, and alias an input of the same layout.
    pub pointwise: bool,
    /// Each element of the result comes from those of the inputs that broadcasting brings to the same
    /// place.
    pub elementwise: bool,
    /// `out=` may have another type, which the result is cast to.
    pub casts: bool,
    /// The result requires grad although there is no derivative; `out=` then may.
    pub opaque: bool,
    /// The host's kernel takes the output's own memory as its first input.
    pub overwrites: bool,
    /// It draws random numbers, which are other ones on each device.
    pub draws: bool,
    /// Whether it may write to elements that share memory.
    pub repeats: Repeats,
    /// Of the types that few ops take or give, those that it does.
    pub rare: Rare,
    /// Outputs through which no gradient flows although their type could carry one.
    pub detached: Mask,
    /// The inputs whose real and imaginary parts go the same way and apart: on a GPU its kernel then takes
    /// one after the other where it has none for complex numbers.
    pub linear: &'static [usize],
}

impl Traits {
    pub const NONE: Traits = Traits {
        pointwise: false,
        elementwise: false,
        casts: false,
        opaque: false,
        overwrites: false,
        draws: false,
        repeats: Repeats::Refused,
        rare: Rare::NONE,
        detached: 0,
        linear: &[],
    };
    /// Of what computes each element by itself, whatever the layouts are.
    pub const POINTWISE: Traits = Traits {
        pointwise: true,
        elementwise: true,
        casts: true,
        ..Traits::NONE
    };
}

/// Kinds of types that only ops which say so compute with (see [`DType::is_rare`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rare(u8);

impl Rare {
    pub const NONE: Rare = Rare(0);
    /// uint16, uint32 and uint64.
    pub const UNSIGNED: Rare = Rare(1);
    /// complex32.
    pub const COMPLEX: Rare = Rare(2);
    /// Those, and the floating types of 8 bits.
    pub const ALL: Rare = Rare(7);

    pub fn has(self, dtype: DType) -> bool {
        let kind = match dtype {
            _ if dtype.is_wide_unsigned() => Rare::UNSIGNED,
            _ if dtype.is_complex() => Rare::COMPLEX,
            _ => Rare(4),
        };
        self.0 & kind.0 != 0
    }
}
