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
            _ => bail!(NotImplemented, "wgpu: no kernel computes in {dtype}"),
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

#[cfg(any(test, feature = "testing"))]
impl<P: Params> Shader<P> {
    /// Validates the text for every type, and compares the parameter block with the text's.
    pub fn check(&self, tail: String) {
        self.check_in(self.source.accs, [&tail, ""]);
    }

    pub fn check_in(&self, accs: &[Acc], tail: [&str; 2]) {
        let name = &self.source.name;
        let source = &self.source;
        // Results of whole words, and those that share one, which may be stored in pairs.
        let lanes = ("Y", DType::U8 as u32);
        let has = |name: &str| source.text.contains(&format!("override {name}:"));
        let mut pairs = vec![("Y", DType::F16 as u32)];
        let together = ["PAIRS", "WORDS"].into_iter().filter(|name| has(name));
        pairs.extend(together.map(|name| (name, 1)));
        if has("HELD") {
            pairs.push(("HELD", 3));
        }
        let formats: &[&[_]] = match (has("Y"), pairs.len() > 1) {
            (true, true) => &[&[], &[lanes], &pairs],
            (true, false) => &[&[], &[lanes]],
            _ => &[&[]],
        };
        for (&acc, constants) in accs
            .iter()
            .flat_map(|a| formats.iter().map(move |f| (a, f)))
        {
            for aliased in [false, true] {
                let text = source.text(acc, constants, tail, aliased).unwrap();
                let (module, info) = valid(name, acc, &text);
                assert_closed(name, &module, &info);
                assert_eq!(
                    fields(&module),
                    described(P::FIELDS),
                    "{name}: struct Params"
                );
            }
        }
    }
}

/// The module of a text, which must be valid on an adapter that computes in `acc`.
#[cfg(any(test, feature = "testing"))]
pub(super) fn valid(name: &str, acc: Acc, text: &str) -> (naga::Module, naga::valid::ModuleInfo) {
    use naga::valid::{Capabilities, ValidationFlags, Validator};
    let mut allowed = match acc {
        Acc::F32 | Acc::I32 | Acc::C64 => Capabilities::empty(),
        Acc::I64 => Capabilities::SHADER_INT64,
        Acc::F64 | Acc::C128 => Capabilities::SHADER_INT64 | Capabilities::FLOAT64,
    };
    for (line, more) in [
        ("enable f16;", Capabilities::SHADER_FLOAT16),
        (
            "enable wgpu_cooperative_matrix;",
            Capabilities::COOPERATIVE_MATRIX | Capabilities::SUBGROUP,
        ),
    ] {
        allowed.set(more, text.lines().any(|l| l == line));
    }
    let module = naga::front::wgsl::parse_str(text)
        .unwrap_or_else(|e| panic!("{name} {acc:?}:\n{}", e.emit_to_string(text)));
    if acc == Acc::I64 {
        // As an adapter without such integers has it.
        let module = super::words::module(name, text).unwrap_or_else(|e| panic!("{}", e.text));
        let short = allowed - Capabilities::SHADER_INT64;
        Validator::new(ValidationFlags::all(), short)
            .validate(&module)
            .unwrap_or_else(|e| panic!("{name} in words:\n{e:?}\n{text}"));
    }
    let info = Validator::new(ValidationFlags::all(), allowed)
        .validate(&module)
        .unwrap_or_else(|e| panic!("{name} {acc:?}:\n{}", e.emit_to_string(text)));
    backends::translate(name, acc, text, &module, &info);
    (module, info)
}

#[cfg(any(test, feature = "testing"))]
#[path = "backends.rs"]
mod backends;

/// Functions that decide by floats none of which is NaN by then, or whose result NaN overwrites; with `m_` also
/// those that have `r_` in its place.
#[cfg(any(test, feature = "testing"))]
const NEVER_NAN: &str = "
    m_acos m_atan m_bessel_j0 m_bessel_j1 m_digamma m_erfc m_erfinv m_expm1 m_floor_div
    m_igamma_fraction m_incomplete m_ln m_ndtri m_next_after m_polygamma m_pow m_sqrt m_tan m_zeta
    draw_binomial draw_gamma draw_poisson
    draw_successes slope_gamma slope_large angle inside largest lu tangent unscaled
";

/// Sees that nothing is decided in a way that a driver may turn round where a number is NaN: no choice between
/// floats by a comparison of floats, none that is negated, no inequality, and no function that drops NaN.
#[cfg(any(test, feature = "testing"))]
pub(super) fn assert_closed(name: &str, module: &naga::Module, info: &naga::valid::ModuleInfo) {
    let own = module.functions.iter().map(|(h, f)| (f, &info[h]));
    let entries = module.entry_points.iter().enumerate();
    let entries = entries.map(|(i, e)| (&e.function, info.get_entry_point(i)));
    let mut found = vec![];
    for (function, info) in own.chain(entries) {
        let named = function.name.as_deref().unwrap_or("");
        let plain = match named.strip_prefix("r_") {
            Some(rest) => format!("m_{rest}"),
            None => named.to_string(),
        };
        let known = NEVER_NAN.split_whitespace().any(|n| n == plain);
        let open = || {
            function
                .expressions
                .iter()
                .any(|e| is_open(function, info, module, e.1))
        };
        if !known && open() {
            found.push(named);
        }
    }
    assert!(
        found.is_empty(),
        "{name}: NaN may go either way in {found:?}"
    );
}

#[cfg(any(test, feature = "testing"))]
fn is_open(
    f: &naga::Function,
    info: &naga::valid::FunctionInfo,
    module: &naga::Module,
    e: &naga::Expression,
) -> bool {
    use naga::{BinaryOperator as B, Expression as E, MathFunction as M, UnaryOperator as U};
    let is_float = |h: naga::Handle<naga::Expression>| {
        let ty = info[h].ty.inner_with(&module.types);
        ty.scalar_kind() == Some(naga::ScalarKind::Float)
    };
    let compares = |h: naga::Handle<naga::Expression>| {
        let E::Binary { op, left, .. } = f.expressions[h] else {
            return false;
        };
        let compares = matches!(
            op,
            B::Less | B::LessEqual | B::Greater | B::GreaterEqual | B::Equal | B::NotEqual
        );
        compares && is_float(left)
    };
    match *e {
        E::Select {
            condition, accept, ..
        } => compares(condition) && is_float(accept),
        E::Unary {
            op: U::LogicalNot,
            expr,
        } => compares(expr),
        E::Binary {
            op: B::NotEqual,
            left,
            ..
        } => is_float(left),
        E::Math {
            fun: M::Min | M::Max | M::Clamp | M::Saturate | M::Step | M::Sign,
            arg,
            ..
        } => is_float(arg),
        _ => false,
    }
}

#[cfg(any(test, feature = "testing"))]
fn described(fields: &[Field]) -> Vec<(String, Field)> {
    let named = |f: &Field| (f.name.to_string(), Field { name: "", ..*f });
    fields.iter().map(named).collect()
}

/// The fields of the uniform that a module binds.
#[cfg(any(test, feature = "testing"))]
fn fields(module: &naga::Module) -> Vec<(String, Field)> {
    let mut globals = module.global_variables.iter();
    let block = globals.find(|(_, v)| v.space == naga::AddressSpace::Uniform);
    let ty = &module.types[block.expect("a uniform").1.ty].inner;
    let naga::TypeInner::Struct { members, .. } = ty else {
        panic!("the uniform is no struct");
    };
    let each = members.iter().map(|m| {
        let inner = &module.types[m.ty].inner;
        let field = Field {
            name: "",
            offset: m.offset as usize,
            size: inner.size(module.to_ctx()) as usize,
            float: inner.scalar_kind() == Some(naga::ScalarKind::Float),
        };
        (m.name.clone().unwrap_or_default(), field)
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
