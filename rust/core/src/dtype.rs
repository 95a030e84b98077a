//! Element types and PyTorch's promotion rules as one table.

use std::sync::atomic::{AtomicU8, Ordering};

/// An element type. `C64` and `C128` are reserved: no kernel accepts them yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DType {
    Bool,
    U8,
    I8,
    I16,
    I32,
    I64,
    F16,
    BF16,
    F32,
    F64,
    C64,
    C128,
}

use DType::*;

/// Every type in the order of its discriminant.
pub const ALL: [DType; 12] = [Bool, U8, I8, I16, I32, I64, F16, BF16, F32, F64, C64, C128];

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
    /// Bytes per element.
    pub const fn size(self) -> usize {
        match self {
            Bool | U8 | I8 => 1,
            I16 | F16 | BF16 => 2,
            I32 | F32 => 4,
            I64 | F64 | C64 => 8,
            C128 => 16,
        }
    }

    /// PyTorch's public name: `float32`, `int64`, `bool`.
    pub const fn name(self) -> &'static str {
        match self {
            Bool => "bool",
            U8 => "uint8",
            I8 => "int8",
            I16 => "int16",
            I32 => "int32",
            I64 => "int64",
            F16 => "float16",
            BF16 => "bfloat16",
            F32 => "float32",
            F64 => "float64",
            C64 => "complex64",
            C128 => "complex128",
        }
    }

    /// The name that PyTorch's messages use: `Float`, `Long`, `Bool`.
    pub const fn scalar_name(self) -> &'static str {
        match self {
            Bool => "Bool",
            U8 => "Byte",
            I8 => "Char",
            I16 => "Short",
            I32 => "Int",
            I64 => "Long",
            F16 => "Half",
            BF16 => "BFloat16",
            F32 => "Float",
            F64 => "Double",
            C64 => "ComplexFloat",
            C128 => "ComplexDouble",
        }
    }

    /// The lower-case C++ name in messages: `float`, `long int`.
    pub const fn c_name(self) -> &'static str {
        match self {
            Bool => "bool",
            U8 => "unsigned char",
            I8 => "signed char",
            I16 => "short int",
            I32 => "int",
            I64 => "long int",
            F16 => "c10::Half",
            BF16 => "c10::BFloat16",
            F32 => "float",
            F64 => "double",
            C64 => "c10::complex<float>",
            C128 => "c10::complex<double>",
        }
    }

    pub const fn is_float(self) -> bool {
        matches!(self, F16 | BF16 | F32 | F64)
    }
    /// The number of this floating type that is nearest to `v`.
    pub fn nearest(self, v: f64) -> f64 {
        match self {
            F16 => half::f16::from_f64(v).to_f64(),
            BF16 => half::bf16::from_f64(v).to_f64(),
            F32 => v as f32 as f64,
            _ => v,
        }
    }
    /// The least and the largest number of an integer type or bool; those of i64 for others.
    pub const fn limits(self) -> (i64, i64) {
        match self {
            Bool => (0, 1),
            U8 => (0, u8::MAX as i64),
            I8 => (i8::MIN as i64, i8::MAX as i64),
            I16 => (i16::MIN as i64, i16::MAX as i64),
            I32 => (i32::MIN as i64, i32::MAX as i64),
            _ => (i64::MIN, i64::MAX),
        }
    }
    pub const fn is_complex(self) -> bool {
        matches!(self, C64 | C128)
    }
    /// Integers, without bool.
    pub const fn is_int(self) -> bool {
        matches!(self, U8 | I8 | I16 | I32 | I64)
    }
    pub const fn is_integral(self) -> bool {
        matches!(self, Bool | U8 | I8 | I16 | I32 | I64)
    }
    pub const fn is_half(self) -> bool {
        matches!(self, F16 | BF16)
    }
    /// Gradients flow through floating-point (and complex) tensors only.
    pub const fn differentiable(self) -> bool {
        self.is_float() || self.is_complex()
    }

    pub const fn promote(self, other: DType) -> DType {
        PROMOTE[self as usize][other as usize]
    }

    /// 0 bool, 1 integer, 2 floating, 3 complex.
    pub const fn category(self) -> u8 {
        match self {
            Bool => 0,
            U8 | I8 | I16 | I32 | I64 => 1,
            F16 | BF16 | F32 | F64 => 2,
            C64 | C128 => 3,
        }
    }

    /// Whether a result of this type may be written into `to` (`can_cast`).
    pub const fn can_cast(self, to: DType) -> bool {
        self.category() <= to.category()
    }

    /// The type in which kernels compute: half types in `F32`, integers and bool in `I64`.
    pub const fn compute(self) -> DType {
        match self {
            Bool | U8 | I8 | I16 | I32 | I64 => I64,
            F16 | BF16 | F32 => F32,
            F64 => F64,
            C64 => C64,
            C128 => C128,
        }
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

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
}

impl Promotion {
    pub fn add(&mut self, dtype: DType, ndim: usize, wrapped_number: bool) {
        let (slot, dtype) = if wrapped_number {
            let dtype = match dtype {
                d if d.is_complex() => {
                    if default_dtype() == F64 {
                        C128
                    } else {
                        C64
                    }
                }
                d if d.is_float() => default_dtype(),
                d => d,
            };
            (&mut self.number, dtype)
        } else if ndim == 0 {
            (&mut self.zero, dtype)
        } else {
            (&mut self.dim, dtype)
        };
        *slot = Some(slot.map_or(dtype, |d| d.promote(dtype)));
    }

    pub fn result(self) -> DType {
        combine(self.dim, combine(self.zero, self.number)).unwrap_or_else(default_dtype)
    }
}

fn combine(higher: Option<DType>, lower: Option<DType>) -> Option<DType> {
    let (Some(h), Some(l)) = (higher, lower) else {
        return higher.or(lower);
    };
    Some(match (h.category(), l.category()) {
        (3, _) => h,
        (2, 3) => {
            if h == F64 {
                C128
            } else {
                C64
            }
        }
        (2, _) => h,
        (0, _) | (_, 2) | (_, 3) => h.promote(l),
        _ => h,
    })
}

/// A Python number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    Float(f64),
}

impl Scalar {
    #[inline(always)]
    pub fn f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => b as u8 as f64,
            Scalar::Int(i) => i as f64,
            Scalar::Float(f) => f,
        }
    }
    /// The integer value; floats are truncated toward zero and saturate.
    #[inline(always)]
    pub fn i64(self) -> i64 {
        match self {
            Scalar::Bool(b) => b as i64,
            Scalar::Int(i) => i,
            Scalar::Float(f) => f as i64,
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
            Scalar::Float(_) => F64,
        }
    }
}

impl std::hash::Hash for Scalar {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.f64().to_bits().hash(state)
    }
}
impl Eq for Scalar {}

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
impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Scalar::Bool(b) => write!(f, "{b}"),
            Scalar::Int(i) => write!(f, "{i}"),
            Scalar::Float(x) => write!(f, "{x}"),
        }
    }
}
