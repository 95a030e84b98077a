//! Elements that are combined with those that are already there.

use super::Mode;
#[cfg(target_arch = "x86_64")]
use crate::cpu::elements::NativeF16;
use crate::cpu::elements::{Bool, Element};
use half::{bf16, f16};

/// An element that can be combined with another.
pub trait Cell: Element {
    fn combine(self, o: Self, mode: Mode) -> Self;

    /// The sum of two numbers alone, without a place in a vector.
    #[inline(always)]
    fn add_one(self, o: Self) -> Self {
        self.combine(o, Mode::Add)
    }

    /// Adds sixteen neighbours to as many.
    ///
    /// # Safety
    /// Both have sixteen elements, and the machine has the instructions of the type.
    #[inline(always)]
    unsafe fn add_block(to: *mut Self, from: *const Self) {
        let (a, b) = (to.cast::<[Self; 16]>(), from.cast::<[Self; 16]>());
        // SAFETY: both have sixteen elements.
        unsafe {
            let (x, y) = (a.read(), b.read());
            a.write(std::array::from_fn(|k| x[k].combine(y[k], Mode::Add)));
        }
    }
}
macro_rules! integer_cells {
    ($($t:ty),*) => { $(impl Cell for $t {
        #[inline(always)]
        fn combine(self, o: Self, mode: Mode) -> Self {
            match mode {
                Mode::Set => o,
                Mode::Add => self.wrapping_add(o),
                Mode::Mul => self.wrapping_mul(o),
                Mode::Max => self.max(o),
                Mode::Min => self.min(o),
            }
        }
    })* };
}
integer_cells!(u8, i8, i16, i32, i64);
macro_rules! float_cells {
    ($($t:ty => $via:ty, $to:ident, $of:ident $(, $block:item)?;)*) => { $(impl Cell for $t {
        $($block)?
        #[inline(always)]
        fn combine(self, o: Self, mode: Mode) -> Self {
            let (a, b): ($via, $via) = (Element::$to(self), Element::$to(o));
            <$t as Element>::$of(match mode {
                Mode::Set => b,
                Mode::Add => a + b,
                Mode::Mul => a * b,
                // A NaN on either side stays.
                Mode::Max => if a.is_nan() || a > b { a } else { b },
                Mode::Min => if a.is_nan() || a < b { a } else { b },
            })
        }
    })* };
}
#[cfg(target_arch = "x86_64")]
float_cells! {
    // In assembly, as the compiler takes the conversions of the type number by number.
    NativeF16 => f32, to_f32, of_f32,
    #[inline(always)]
    unsafe fn add_block(to: *mut Self, from: *const Self) {
        for i in [0, 4, 8, 12] {
            // SAFETY: both have four elements from there on; who has this type has asked for the
            // instructions.
            unsafe {
                std::arch::asm!(
                    "vcvtph2ps {x}, [{a}]", "vcvtph2ps {y}, [{b}]", "vaddps {x}, {x}, {y}",
                    "vcvtps2ph [{a}], {x}, 0",
                    a = in(reg) to.add(i), b = in(reg) from.add(i),
                    x = out(xmm_reg) _, y = out(xmm_reg) _,
                    options(nostack, preserves_flags)
                )
            };
        }
    };
}
float_cells! {
    f16 => f32, to_f32, of_f32;
    // A branch is less than the instructions that round what is no number.
    bf16 => f32, to_f32, of_f32,
    #[inline(always)]
    fn add_one(self, o: Self) -> Self {
        let sum = self.to_f32() + o.to_f32();
        if sum.is_nan() {
            return Element::of_f32(sum);
        }
        let bits = sum.to_bits();
        bf16::from_bits(((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16)
    };
    f32 => f32, to_f32, of_f32;
    f64 => f64, to_f64, of_f64;
}
impl Cell for Bool {
    #[inline(always)]
    fn combine(self, o: Self, mode: Mode) -> Self {
        let (a, b) = (self.0 != 0, o.0 != 0);
        Bool(match mode {
            Mode::Set => b,
            Mode::Add | Mode::Max => a | b,
            Mode::Mul | Mode::Min => a & b,
        } as u8)
    }
}

/// Runs the body with `$T` bound to the [`Cell`] of a dtype that is quickest on this machine.
macro_rules! with_cell {
    ($dtype:expr, $T:ident => $body:expr) => {
        if $dtype == $crate::dtype::DType::F16 && $crate::cpu::elements::converts_f16() {
            type $T = $crate::cpu::elements::NativeF16;
            $body
        } else {
            $crate::with_element!($dtype, $T => $body)
        }
    };
}
pub(crate) use with_cell;
