//! Shaders: WGSL text, the numbers it knows by name, and its parameter block.

use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::OnceLock;

/// The type that a kernel computes in: `alias Acc` in WGSL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Acc {
    F32,
    I32,
    I64,
    F64,
    /// Complex numbers of two float32: elementwise kernels, factors of matrices and Fourier transforms.
    C64,
    /// Complex numbers of two float64, likewise.
    C128,
}

macro_rules! math_f32 {
    () => {
        include_str!("../../../shaders/math_f32.wgsl")
    };
}
/// What both types with float64 have.
macro_rules! prelude_long {
    () => {
        include_str!("../../../shaders/prelude_long.wgsl")
    };
}
/// What real types have of complex ones, and what complex ones have.
macro_rules! prelude_real {
    () => {
        include_str!("../../../shaders/prelude_real.wgsl")
    };
}
macro_rules! prelude_pair {
    () => {
        include_str!("../../../shaders/prelude_pair.wgsl")
    };
}
macro_rules! math_f64 {
    () => {
        include_str!("../../../shaders/math_f64.wgsl")
    };
}

/// A text of functions with those that both float types share.
macro_rules! floats {
    ($($own:expr),* $(,)?) => {
        concat!(
            $($own,)*
            include_str!("../../../shaders/math_special.wgsl"),
            include_str!("../../../shaders/math_polynomials.wgsl"),
        )
    };
}

impl Acc {
    pub const ALL: &'static [Acc] = &[Acc::F32, Acc::I32, Acc::I64, Acc::F64];
    /// Of elementwise kernels.
    pub const EACH: &'static [Acc] = &[Acc::F32, Acc::I32, Acc::I64, Acc::F64, Acc::C64, Acc::C128];
    pub const COMPLEX: &'static [Acc] = &[Acc::C64, Acc::C128];
    pub const FLOAT: &'static [Acc] = &[Acc::F32];
    /// Of kernels that move elements without computing with them.
    pub const WORDS: &'static [Acc] = &[Acc::I32];

    /// The type in which elements of `dtype` are computed with.
    pub fn of(dtype: DType) -> Result<Acc> {
        Ok(match dtype {
            DType::F16 | DType::BF16 | DType::F32 => Acc::F32,
            DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 => Acc::I32,
            DType::I64 => Acc::I64,
            DType::F64 => Acc::F64,
            _ => bail!(NoKernel, "wgpu: no kernel computes in {dtype}"),
        })
    }

    /// [`Acc::of`], also for kernels that know complex numbers.
    pub fn of_any(dtype: DType) -> Result<Acc> {
        match dtype {
            DType::C64 => Ok(Acc::C64),
            DType::C128 => Ok(Acc::C128),
            other => Acc::of(other),
        }
    }

    /// The tensor type of intermediate results.
    pub fn dtype(self) -> DType {
        match self {
            Acc::F32 => DType::F32,
            Acc::I32 => DType::I32,
            Acc::I64 => DType::I64,
            Acc::F64 => DType::F64,
            Acc::C64 => DType::C64,
            Acc::C128 => DType::C128,
        }
    }

    /// A number as the two words of a scalar parameter.
    pub fn words(self, v: f64) -> [u32; 2] {
        match self {
            Acc::F32 | Acc::C64 => [(v as f32).to_bits(), 0],
            Acc::I32 => [v as i32 as u32, 0],
            Acc::I64 => split(v as i64 as u64),
            Acc::F64 | Acc::C128 => split(v.to_bits()),
        }
    }

    /// An integer as the two words of a scalar parameter.
    pub fn int_words(self, v: i64) -> [u32; 2] {
        match self {
            Acc::I32 => [v as u32, 0],
            Acc::I64 => split(v as u64),
            _ => self.words(v as f64),
        }
    }

    pub(super) fn prelude(self) -> &'static str {
        match self {
            Acc::F32 => concat!(
                include_str!("../../../shaders/prelude_f32.wgsl"),
                prelude_real!(),
            ),
            Acc::I32 => include_str!("../../../shaders/prelude_i32.wgsl"),
            Acc::I64 => include_str!("../../../shaders/prelude_i64.wgsl"),
            Acc::F64 => concat!(
                prelude_long!(),
                include_str!("../../../shaders/prelude_f64.wgsl"),
                prelude_real!(),
            ),
            Acc::C64 => concat!(
                include_str!("../../../shaders/prelude_c64.wgsl"),
                prelude_pair!(),
            ),
            Acc::C128 => concat!(
                prelude_long!(),
                include_str!("../../../shaders/prelude_c128.wgsl"),
                prelude_pair!(),
            ),
        }
    }

    pub(super) fn math(self) -> &'static str {
        match self {
            Acc::F32 => floats!(math_f32!()),
            Acc::I32 | Acc::I64 => include_str!("../../../shaders/math_int.wgsl"),
            Acc::F64 => floats!(
                math_f64!(),
                include_str!("../../../shaders/math_f64_more.wgsl"),
            ),
            Acc::C64 => complex_math(&MATH_C64),
            Acc::C128 => complex_math(&MATH_C128),
        }
    }

    /// Whether numbers are pairs of a real and an imaginary part.
    pub fn is_complex(self) -> bool {
        matches!(self, Acc::C64 | Acc::C128)
    }

    /// Whether a pointwise body may call every `m_` function it names.
    pub fn has_functions(self, tail: &str) -> bool {
        tail.match_indices("m_").all(|(at, _)| {
            let word = tail[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let name = tail[at..].split('(').next().unwrap_or("");
            word || self.math().contains(&format!("fn {name}("))
        })
    }
}

/// Functions of complex numbers of a type: those of its parts, what else there is to know of these, and all
/// when they were put together.
struct ComplexMath {
    parts: &'static str,
    known: &'static str,
    made: OnceLock<String>,
}

static MATH_C64: ComplexMath = ComplexMath {
    parts: math_f32!(),
    known: include_str!("../../../shaders/math_c64.wgsl"),
    made: OnceLock::new(),
};
static MATH_C128: ComplexMath = ComplexMath {
    parts: math_f64!(),
    known: include_str!("../../../shaders/math_c128.wgsl"),
    made: OnceLock::new(),
};

/// The whole text; names of functions of parts begin with `r_`.
fn complex_math(of: &'static ComplexMath) -> &'static str {
    of.made.get_or_init(|| {
        let real = of.parts.replace("m_", "r_");
        let functions = include_str!("../../../shaders/math_complex.wgsl");
        [&real, of.known, functions].concat()
    })
}

fn split(v: u64) -> [u32; 2] {
    [v as u32, (v >> 32) as u32]
}

/// Numbers that a shader's text knows by these names.
pub type Numbers = &'static [(&'static str, u32)];

/// A kernel's text, and the type of its parameter block.
pub struct Shader<P> {
    pub(super) source: Source,
    block: PhantomData<fn() -> P>,
}

/// What a [`Shader`] is made of.
#[derive(Clone, Debug)]
pub struct Source {
    pub(super) name: Cow<'static, str>,
    pub(super) text: Cow<'static, str>,
    /// The types that it may compute in.
    pub(super) accs: &'static [Acc],
    pub(super) numbers: &'static [Numbers],
    /// Whether the text is ours, so that no load, store or loop needs a check.
    pub(super) trusted: bool,
}

impl<P> Shader<P> {
    /// A file of ours; see [`shader!`].
    pub const fn file(
        name: &'static str,
        text: &'static str,
        accs: &'static [Acc],
        numbers: &'static [Numbers],
    ) -> Shader<P> {
        let source = Source {
            name: Cow::Borrowed(name),
            text: Cow::Borrowed(text),
            accs,
            numbers,
            trusted: true,
        };
        Shader {
            source,
            block: PhantomData,
        }
    }

    /// Text that others wrote, after the same convention. It runs with the checks of wgpu: no load
    /// or store leaves its buffer, loops end, and workgroup memory begins as zeros.
    pub fn untrusted(name: impl Into<String>, text: impl Into<String>) -> Shader<P> {
        let source = Source {
            name: Cow::Owned(name.into()),
            text: Cow::Owned(text.into()),
            accs: Acc::ALL,
            numbers: &[],
            trusted: false,
        };
        Shader {
            source,
            block: PhantomData,
        }
    }
}

impl Hash for Source {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.name, self.trusted).hash(state);
        // The names of files are unique.
        if !self.trusted {
            self.text.hash(state);
        }
    }
}

/// A parameter block: the fields of `struct Params` in the shader's text.
pub trait Params: bytemuck::NoUninit {
    const FIELDS: &'static [Field];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    pub offset: usize,
    pub size: usize,
    /// Whether it holds floats.
    pub float: bool,
}

/// Declares a parameter block: plain words in the order of the shader's `struct Params`.
#[macro_export]
macro_rules! params {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($(#[$about:meta])* $field:ident: $ty:ty,)* }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
        $vis struct $name { $($(#[$about])* pub $field: $ty,)* }

        impl $crate::shader::Params for $name {
            const FIELDS: &'static [$crate::shader::Field] = &[$($crate::shader::Field {
                name: stringify!($field),
                offset: std::mem::offset_of!($name, $field),
                size: size_of::<$ty>(),
                float: matches!(stringify!($ty).as_bytes(), b"f32"),
            },)*];
        }
    };
}

/// Declares a shader: a file of `shaders/`, the type of its parameter block, the types it may
/// compute in and the numbers it knows by name. A test holds the block to the file's and validates
/// the file for every type.
#[macro_export]
macro_rules! shader {
    (
        $(#[$meta:meta])*
        $vis:vis static $name:ident: $params:ty = $file:literal, $accs:expr
        $(, numbers $($numbers:expr),+)? $(; tail $tail:expr)?
    ) => {
        $(#[$meta])*
        $vis static $name: $crate::shader::Shader<$params> =
            $crate::shader::Shader::file(
                $file,
                include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shaders/", $file)),
                $accs,
                &[$($($numbers),+)?],
            );
        #[cfg(test)]
        #[allow(non_snake_case)]
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            #[test]
            fn is_valid() {
                super::$name.check(["", $($tail)?].concat());
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{described, fields};

    #[test]
    fn has_functions_unknown_name_is_false() {
        assert!(Acc::F32.has_functions("return m_exp(a);"));
        assert!(!Acc::F64.has_functions("return m_unknown(a);"));
        assert!(Acc::F64.has_functions("let sum_m_exp = a;"));
    }

    #[test]
    fn a_block_that_differs_is_found() {
        params! { struct Block { n: u32, scale: f32, } }
        let uniform = |members: &str| {
            let text = format!(
                "struct Params {{ {members} }} @group(0) @binding(0) var<uniform> p: Params;"
            );
            fields(&naga::front::wgsl::parse_str(&text).unwrap())
        };
        let ours = described(Block::FIELDS);
        assert_eq!(uniform("n: u32, scale: f32"), ours);
        for other in [
            "scale: f32, n: u32",
            "n: u32, scale: u32",
            "n: vec2<u32>, scale: f32",
        ] {
            assert_ne!(uniform(other), ours, "{other}");
        }
    }
}
