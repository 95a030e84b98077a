//! Element types and PyTorch's promotion rules as one table.

use crate::error::Result;
use crate::{bail, ensure, float8};
use std::fmt::{self, Debug, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU8, Ordering};

/// Makes the enum, and what is a table over it.
macro_rules! dtypes {
    ($($D:ident $size:literal $category:ident $compute:ident $name:literal $scalar:literal
       $c:literal;)*) => {
        /// An element type. Few ops take those behind `C128` (see [`DType::is_rare`]).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum DType {
            $($D),*
        }

        use DType::*;

        /// Every type in the order of its discriminant.
        pub const ALL: [DType; [$($size),*].len()] = [$($D),*];

        impl DType {
            /// Bytes per element.
            pub const fn size(self) -> usize {
                match self { $($D => $size),* }
            }
            /// What kind of numbers it has.
            pub const fn category(self) -> Category {
                match self { $($D => Category::$category),* }
            }
            /// The type in which kernels compute: smaller floats in `F32`, integers and bool in `I64`.
            /// None computes in a wide unsigned type.
            pub const fn compute(self) -> DType {
                match self { $($D => $compute),* }
            }
            /// PyTorch's public name: `float32`, `int64`, `bool`.
            pub const fn name(self) -> &'static str {
                match self { $($D => $name),* }
            }
            /// The name that PyTorch's messages use: `Float`, `Long`, `Bool`.
            pub const fn scalar_name(self) -> &'static str {
                match self { $($D => $scalar),* }
            }
            /// The lower-case C++ name in messages: `float`, `long int`.
            pub const fn c_name(self) -> &'static str {
                match self { $($D => $c),* }
            }
        }
    };
}

// Bytes, category, what kernels compute in, and the names: public, in messages, in C++.
dtypes! {
    Bool 1 Bool I64 "bool" "Bool" "bool";
    U8 1 Integer I64 "uint8" "Byte" "unsigned char";
    I8 1 Integer I64 "int8" "Char" "signed char";
    I16 2 Integer I64 "int16" "Short" "short int";
    I32 4 Integer I64 "int32" "Int" "int";
    I64 8 Integer I64 "int64" "Long" "long int";
    F16 2 Float F32 "float16" "Half" "c10::Half";
    BF16 2 Float F32 "bfloat16" "BFloat16" "c10::BFloat16";
    F32 4 Float F32 "float32" "Float" "float";
    F64 8 Float F64 "float64" "Double" "double";
    C64 8 Complex C64 "complex64" "ComplexFloat" "c10::complex<float>";
    C128 16 Complex C128 "complex128" "ComplexDouble" "c10::complex<double>";
    U16 2 Integer U16 "uint16" "UInt16" "uint16_t";
    U32 4 Integer U32 "uint32" "UInt32" "uint32_t";
    U64 8 Integer U64 "uint64" "UInt64" "uint64_t";
    F8E4M3FN 1 Float F32 "float8_e4m3fn" "Float8_e4m3fn" "c10::Float8_e4m3fn";
    F8E5M2 1 Float F32 "float8_e5m2" "Float8_e5m2" "c10::Float8_e5m2";
    F8E4M3FNUZ 1 Float F32 "float8_e4m3fnuz" "Float8_e4m3fnuz" "c10::Float8_e4m3fnuz";
    F8E5M2FNUZ 1 Float F32 "float8_e5m2fnuz" "Float8_e5m2fnuz" "c10::Float8_e5m2fnuz";
    F8E8M0FNU 1 Float F32 "float8_e8m0fnu" "Float8_e8m0fnu" "c10::Float8_e8m0fnu";
    C32 4 Complex C32 "complex32" "ComplexHalf" "c10::complex<c10::Half>";
}

/// Kinds of numbers; a result of one can be written into those that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    Bool,
    Integer,
    Float,
    Complex,
}

/// The floating types of 8 bits, in the order of `float8`.
pub const FLOAT8: [DType; 5] = [F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU];

/// `PROMOTE[a][b]` is the smallest type that both `a` and `b` convert to (`promote_types`).
const PROMOTE: [[DType; 12]; 12] = [
    [Bool, U8, I8, I16, I32, I64, F16, BF16, F32, F64, C64, C128],
    [U8, U8, I16, I16, I32, I64, F16, BF16, F32, F64, C64, C128],
    [I8, I16, I8, I16, I32, I64, F16, BF16, F32, F64, C64, C128],
    [I16, I16, I16, I16, I32, I64, F16, BF16, F32, F64, C64, C128],
    [I32, I32, I32, I32, I32, I64, F16, BF16, F32, F64, C64, C128],
    [I64, I64, I64, I64, I64, I64, F16, BF16, F32, F64, C64, C128],
    [F16, F16, F16, F16, F16, F16, F16, F32, F32, F64, C64, C128],
    [
        BF16, BF16, BF16, BF16, BF16, BF16, F32, BF16, F32, F64, C64, C128,
    ],
    [F32, F32, F32, F32, F32, F32, F32, F32, F32, F64, C64, C128],
    [F64, F64, F64, F64, F64, F64, F64, F64, F64, F64, C128, C128],
    [C64, C64, C64, C64, C64, C64, C64, C64, C64, C128, C64, C128],
    [
        C128, C128, C128, C128, C128, C128, C128, C128, C128, C128, C128, C128,
    ],
];

impl DType {
    /// The name in messages about numbers that it does not hold: `int64_t`.
    pub const fn number_name(self) -> &'static str {
        match self {
            DType::U8 => "uint8_t",
            DType::I8 => "int8_t",
            DType::I16 => "int16_t",
            DType::I64 => "int64_t",
            other => other.c_name(),
        }
    }

    /// The type of a sum or product without `dtype`: integers and bool become `I64`.
    pub fn to_sum(self) -> DType {
        if self.is_integral() {
            DType::I64
        } else {
            self
        }
    }

    pub const fn is_float(self) -> bool {
        matches!(self.category(), Category::Float)
    }
    /// The format of a floating type of 8 bits, as `float8` counts them.
    pub const fn float8(self) -> Option<usize> {
        match self {
            F8E4M3FN => Some(0),
            F8E5M2 => Some(1),
            F8E4M3FNUZ => Some(2),
            F8E5M2FNUZ => Some(3),
            F8E8M0FNU => Some(4),
            _ => None,
        }
    }
    pub const fn is_float8(self) -> bool {
        self.float8().is_some()
    }
    /// The number of this floating type that is nearest to `v`.
    pub fn nearest(self, v: f64) -> f64 {
        match self {
            F16 => half::f16::from_f64(v).to_f64(),
            BF16 => half::bf16::from_f64(v).to_f64(),
            F32 => v as f32 as f64,
            _ => match self.float8() {
                Some(k) => float8::decode(k, float8::encode(k, v as f32)) as f64,
                None => v,
            },
        }
    }
    /// The least and the largest number of an integer type or bool, as far as an i64 goes; those
    /// of i64 for others.
    pub const fn limits(self) -> (i64, i64) {
        match self {
            Bool => (0, 1),
            U8 => (0, u8::MAX as i64),
            I8 => (i8::MIN as i64, i8::MAX as i64),
            I16 => (i16::MIN as i64, i16::MAX as i64),
            I32 => (i32::MIN as i64, i32::MAX as i64),
            U16 => (0, u16::MAX as i64),
            U32 => (0, u32::MAX as i64),
            U64 => (0, i64::MAX),
            _ => (i64::MIN, i64::MAX),
        }
    }
    pub const fn is_complex(self) -> bool {
        matches!(self.category(), Category::Complex)
    }
    /// The type of a complex type's parts; others stay.
    pub const fn part(self) -> DType {
        match self {
            C32 => F16,
            C64 => F32,
            C128 => F64,
            other => other,
        }
    }
    /// The complex type that goes with a floating one; complex ones stay.
    pub const fn complex(self) -> DType {
        match self {
            F16 | C32 => C32,
            F64 | C128 => C128,
            _ => C64,
        }
    }
    /// Integers, without bool.
    pub const fn is_int(self) -> bool {
        matches!(self.category(), Category::Integer)
    }
    pub const fn is_integral(self) -> bool {
        self.is_int() || matches!(self, Bool)
    }
    /// The types that are stored, converted, moved and compared, and that only ops which say so
    /// compute with.
    pub const fn is_rare(self) -> bool {
        self as u8 > C128 as u8
    }
    /// The type in its stead that all ops know; others stay.
    pub const fn usual(self) -> DType {
        match self {
            U16 | U32 | U64 => I64,
            C32 => C64,
            _ if self.is_float8() => F32,
            other => other,
        }
    }
    pub const fn is_wide_unsigned(self) -> bool {
        matches!(self, U16 | U32 | U64)
    }
    pub const fn is_signed(self) -> bool {
        !matches!(self, Bool | U8 | U16 | U32 | U64 | F8E8M0FNU)
    }
    /// The signed integer type of the same size for a rare one; others stay.
    pub const fn signed(self) -> DType {
        match (self.is_rare(), self.size()) {
            (false, _) => self,
            (_, 1) => I8,
            (_, 2) => I16,
            (_, 4) => I32,
            _ => I64,
        }
    }
    pub const fn is_half(self) -> bool {
        matches!(self, F16 | BF16)
    }
    /// Gradients flow through floating-point (and complex) tensors only.
    pub const fn differentiable(self) -> bool {
        self.is_float() || self.is_complex()
    }

    /// The smallest type that both convert to. Where there is none (see [`DType::common`]) it is
    /// the rare one, which ops refuse.
    pub const fn promote(self, other: DType) -> DType {
        match (self.is_rare(), other.is_rare()) {
            (false, false) => PROMOTE[self as usize][other as usize],
            (true, _) => self.promote_rare(other),
            _ => other.promote_rare(self),
        }
    }

    const fn promote_rare(self, other: DType) -> DType {
        match (self, other) {
            (C32, C64 | C128) | (U16 | U32 | U64, F16 | BF16 | F32 | F64) => other,
            (C32, BF16 | F32) => C64,
            (C32, F64) => C128,
            _ => self,
        }
    }

    /// As [`DType::promote`]; an error where no type holds both.
    pub fn common(self, other: DType) -> Result<DType> {
        let kinds = match (self, other) {
            _ if self == other => None,
            (a, b) if a.is_float8() || b.is_float8() => Some("Float8 Types"),
            (a, b) if a.is_float() || b.is_float() => None,
            (a, b) if a.is_wide_unsigned() || b.is_wide_unsigned() => {
                Some("uint16, uint32, uint64 types")
            }
            _ => None,
        };
        if let Some(kinds) = kinds {
            bail!(
                Runtime,
                "Promotion for {kinds} is not supported, attempted to promote {} and {}. Convert \
                 one of them with .to(dtype).",
                self.scalar_name(),
                other.scalar_name()
            );
        }
        Ok(self.promote(other))
    }

    /// Whether a result of this type may be written into `to` (`can_cast`).
    pub const fn can_cast(self, to: DType) -> bool {
        self.category() as u8 <= to.category() as u8
    }

    /// Floating types stay; others become the default floating type.
    pub fn to_float(self) -> DType {
        if self.differentiable() {
            self
        } else {
            default_dtype()
        }
    }

    pub fn from_index(i: u8) -> Option<DType> {
        ALL.get(i as usize).copied()
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

static DEFAULT: AtomicU8 = AtomicU8::new(F32 as u8);

/// The type of Python floats and of factories without `dtype` (`get_default_dtype`).
pub fn default_dtype() -> DType {
    ALL[DEFAULT.load(Ordering::Relaxed) as usize]
}

/// Sets the default; the caller checks that it is a floating type.
pub fn set_default_dtype(dtype: DType) {
    DEFAULT.store(dtype as u8, Ordering::Relaxed);
}

/// Accumulates `result_type` over operands in PyTorch's three ranks: tensors with dimensions,
/// 0-d tensors, and Python numbers. A lower rank changes the result only by a higher category.
#[derive(Clone, Copy, Debug, Default)]
pub struct Promotion {
    dim: Option<DType>,
    zero: Option<DType>,
    number: Option<DType>,
    /// Two types that have no common one.
    clash: Option<(DType, DType)>,
}

impl Promotion {
    pub fn add(&mut self, dtype: DType, ndim: usize, wrapped_number: bool) {
        let (slot, dtype) = if wrapped_number {
            let dtype = match dtype {
                d if d.is_complex() => default_dtype().complex(),
                d if d.is_float() => default_dtype(),
                d => d,
            };
            (&mut self.number, dtype)
        } else if ndim == 0 {
            (&mut self.zero, dtype)
        } else {
            (&mut self.dim, dtype)
        };
        if let Some(d) = *slot {
            if (d.is_rare() || dtype.is_rare()) && d.common(dtype).is_err() {
                self.clash = Some((d, dtype));
            }
            *slot = Some(d.promote(dtype));
        } else {
            *slot = Some(dtype);
        }
    }

    pub fn result(self) -> Result<DType> {
        if let Some((a, b)) = self.clash {
            return a.common(b);
        }
        let low = combine(self.zero, self.number)?;
        Ok(combine(self.dim, low)?.unwrap_or_else(default_dtype))
    }
}

fn combine(higher: Option<DType>, lower: Option<DType>) -> Result<Option<DType>> {
    let (Some(h), Some(l)) = (higher, lower) else {
        return Ok(higher.or(lower));
    };
    Ok(Some(match (h.category(), l.category()) {
        (Category::Complex, _) => h,
        (Category::Float, Category::Complex) if h.is_float8() => bail!(
            Runtime,
            "Unknown Complex ScalarType for {}",
            h.scalar_name()
        ),
        (Category::Float, Category::Complex) => h.complex(),
        (Category::Float, _) => h,
        (Category::Bool, _) | (_, Category::Float | Category::Complex) => h.common(l)?,
        _ => h,
    }))
}

/// A Python number. Floats are compared and hashed by their bits: what an op does with -0.0 is not
/// what it does with 0.0.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    /// An integer beyond those of i64.
    UInt(u64),
    Float(f64),
}

impl Scalar {
    #[inline(always)]
    pub fn f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => b as u8 as f64,
            Scalar::Int(i) => i as f64,
            Scalar::UInt(u) => u as f64,
            Scalar::Float(f) => f,
        }
    }
    /// The integer value; floats are truncated toward zero and saturate, integers beyond wrap.
    #[inline(always)]
    pub fn i64(self) -> i64 {
        match self {
            Scalar::Bool(b) => b as i64,
            Scalar::Int(i) => i,
            Scalar::UInt(u) => u as i64,
            Scalar::Float(f) => f as i64,
        }
    }
    /// An integer of any size up to 64 bits.
    pub fn unsigned(v: u64) -> Scalar {
        i64::try_from(v).map_or(Scalar::UInt(v), Scalar::Int)
    }
    /// As [`Scalar::i64`]; the largest i64 for integers beyond.
    pub fn i64_at_most(self) -> i64 {
        match self {
            Scalar::UInt(_) => i64::MAX,
            other => other.i64(),
        }
    }
    pub fn is_float(self) -> bool {
        matches!(self, Scalar::Float(_))
    }
    pub fn truth(self) -> bool {
        self.f64() != 0.0
    }
    /// The type of a tensor made from this number alone.
    pub fn dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => Bool,
            Scalar::Int(_) => I64,
            Scalar::UInt(_) => U64,
            Scalar::Float(_) => F64,
        }
    }
}

impl Scalar {
    fn bits(self) -> (u8, u64) {
        match self {
            Scalar::Bool(b) => (0, b as u64),
            Scalar::Int(i) => (1, i as u64),
            Scalar::UInt(u) => (2, u),
            Scalar::Float(f) => (3, f.to_bits()),
        }
    }
}
impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        self.bits() == other.bits()
    }
}
impl Eq for Scalar {}
impl Hash for Scalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bits().hash(state)
    }
}

/// A float, or a list of them, that is compared and hashed by its bits, as a field of an op.
#[derive(Clone, Copy)]
pub struct Bitwise<T = f64>(pub T);

pub trait Floats {
    fn floats(&self) -> &[f64];
}
impl Floats for f64 {
    fn floats(&self) -> &[f64] {
        std::slice::from_ref(self)
    }
}
impl Floats for Vec<f64> {
    fn floats(&self) -> &[f64] {
        self
    }
}

impl<T> std::ops::Deref for Bitwise<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}
impl<T: Floats> Bitwise<T> {
    fn bits(&self) -> &[u64] {
        bytemuck::cast_slice(self.0.floats())
    }
}
impl<T: Debug> Debug for Bitwise<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
impl<T: Floats> PartialEq for Bitwise<T> {
    fn eq(&self, other: &Self) -> bool {
        self.bits() == other.bits()
    }
}
impl<T: Floats> Eq for Bitwise<T> {}
impl<T: Floats> Hash for Bitwise<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bits().hash(state)
    }
}

/// Refuses numbers that a type cannot hold, as PyTorch does for fill values. Negative integers wrap
/// in unsigned types.
pub fn check_range(value: Scalar, dtype: DType) -> Result<()> {
    let v = value.f64();
    if let Some(k) = dtype.float8() {
        let (high, infinite) = float8::limits(k);
        let high = high as f64;
        let low = if dtype.is_signed() { -high } else { 1.0 / high };
        let inside = (low..=high).contains(&v) || v.is_nan() || infinite && v.is_infinite();
        ensure!(
            inside,
            Runtime,
            "value cannot be converted to type {} without overflow: {value}",
            dtype.c_name()
        );
        return Ok(());
    }
    let (low, high) = match dtype {
        DType::U8 if value.is_float() => (0.0, 255.0),
        DType::U8 => (-255.0, 255.0),
        DType::I8 => (-128.0, 127.0),
        DType::I16 => (-32768.0, 32767.0),
        DType::I32 => (i32::MIN as f64, i32::MAX as f64),
        DType::I64 => (i64::MIN as f64, 9_223_372_036_854_774_784.0),
        DType::U16 if value.is_float() => (0.0, 65535.0),
        DType::U16 => (-65535.0, 65535.0),
        DType::U32 if value.is_float() => (0.0, u32::MAX as f64),
        DType::U32 => (-(u32::MAX as f64), u32::MAX as f64),
        // The largest number below 2^64 that a float64 holds.
        DType::U64 => (0.0, 18_446_744_073_709_549_568.0),
        DType::F16 => (-65504.0, 65504.0),
        DType::BF16 => (-half::bf16::MAX.to_f64(), half::bf16::MAX.to_f64()),
        DType::F32 => (-f32::MAX as f64, f32::MAX as f64),
        DType::C64 => (-f32::MAX as f64, f32::MAX as f64),
        _ => return Ok(()),
    };
    if !dtype.is_int() && !v.is_finite()
        || matches!(
            (dtype, value),
            (DType::I64, Scalar::Int(_) | Scalar::Bool(_))
                | (
                    DType::U64,
                    Scalar::Int(_) | Scalar::UInt(_) | Scalar::Bool(_)
                )
        )
    {
        return Ok(());
    }
    ensure!(
        v >= low && v <= high,
        Runtime,
        "value cannot be converted to type {} without overflow: {value}",
        dtype.number_name()
    );
    Ok(())
}

impl From<f64> for Scalar {
    fn from(v: f64) -> Self {
        Scalar::Float(v)
    }
}
impl From<i64> for Scalar {
    fn from(v: i64) -> Self {
        Scalar::Int(v)
    }
}
impl From<bool> for Scalar {
    fn from(v: bool) -> Self {
        Scalar::Bool(v)
    }
}
impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(b) => write!(f, "{b}"),
            Scalar::Int(i) => write!(f, "{i}"),
            Scalar::UInt(u) => write!(f, "{u}"),
            Scalar::Float(x) => write!(f, "{x}"),
        }
    }
}
