//! The WGSL files, and how one source is put together: the prelude, the prelude of the type that
//! the kernel computes in, the file, and for pointwise bodies the functions they may call and the
//! generated tail.

use crate::bail;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// The type that a kernel computes in: `alias Acc` in WGSL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Acc {
    F32,
    I32,
    I64,
    F64,
}

impl Acc {
    pub const ALL: [Acc; 4] = [Acc::F32, Acc::I32, Acc::I64, Acc::F64];

    /// The type in which elements of `dtype` are computed with.
    pub fn of(dtype: DType) -> Result<Acc> {
        Ok(match dtype {
            DType::F16 | DType::BF16 | DType::F32 => Acc::F32,
            DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 => Acc::I32,
            DType::I64 => Acc::I64,
            DType::F64 => Acc::F64,
            DType::C64 | DType::C128 | DType::U16 | DType::U32 | DType::U64 => {
                bail!(NotImplemented, "wgpu: no kernel computes in {dtype}")
            }
        })
    }

    /// The tensor type of intermediate results.
    pub fn dtype(self) -> DType {
        match self {
            Acc::F32 => DType::F32,
            Acc::I32 => DType::I32,
            Acc::I64 => DType::I64,
            Acc::F64 => DType::F64,
        }
    }

    /// A number as the two words of a scalar parameter.
    pub fn words(self, v: f64) -> [u32; 2] {
        match self {
            Acc::F32 => [(v as f32).to_bits(), 0],
            Acc::I32 => [v as i32 as u32, 0],
            Acc::I64 => split(v as i64 as u64),
            Acc::F64 => split(v.to_bits()),
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

    fn prelude(self) -> &'static str {
        match self {
            Acc::F32 => include_str!("../../../../shaders/prelude_f32.wgsl"),
            Acc::I32 => include_str!("../../../../shaders/prelude_i32.wgsl"),
            Acc::I64 => include_str!("../../../../shaders/prelude_i64.wgsl"),
            Acc::F64 => include_str!("../../../../shaders/prelude_f64.wgsl"),
        }
    }

    fn math(self) -> &'static str {
        match self {
            Acc::F32 => include_str!("../../../../shaders/math_f32.wgsl"),
            Acc::I32 | Acc::I64 => include_str!("../../../../shaders/math_int.wgsl"),
            Acc::F64 => include_str!("../../../../shaders/math_f64.wgsl"),
        }
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

fn split(v: u64) -> [u32; 2] {
    [v as u32, (v >> 32) as u32]
}

/// A kernel file: its name, its text and the types that it may compute in.
pub struct File {
    pub name: &'static str,
    pub text: &'static str,
    pub accs: &'static [Acc],
}

const ANY: &[Acc] = &Acc::ALL;
const FLOAT: &[Acc] = &[Acc::F32];
/// Kernels that move elements without computing with them.
const WORDS: &[Acc] = &[Acc::I32];

macro_rules! files {
    ($($name:literal: $accs:expr),* $(,)?) => {
        /// Every kernel file.
        pub const FILES: &[File] = &[$(File {
            name: $name,
            text: include_str!(concat!("../../../../shaders/", $name, ".wgsl")),
            accs: $accs,
        }),*];
    };
}
files! {
    "pointwise": ANY,
    "reduce": ANY,
    "arg_reduce": ANY,
    "matmul": ANY,
    "softmax": FLOAT,
    "softmax_backward": FLOAT,
    "index_offsets": WORDS,
    "take": WORDS,
    "chain": WORDS,
    "put": ANY,
    "gather": WORDS,
    "scatter": ANY,
    "nll": FLOAT,
    "nll_backward": FLOAT,
    "conv2d": FLOAT,
    "max_pool2d": ANY,
    "max_pool2d_backward": FLOAT,
    "avg_pool2d": FLOAT,
    "avg_pool2d_backward": FLOAT,
    "norm": FLOAT,
    "norm_backward": FLOAT,
    "sgd": FLOAT,
    "adam": FLOAT,
}

/// Functions for random numbers in pointwise bodies.
pub const PHILOX: &str = include_str!("../../../../shaders/philox.wgsl");
const PRELUDE: &str = include_str!("../../../../shaders/prelude.wgsl");

/// The whole source of a kernel. With `aliased`, read-only bindings become read_write: one
/// dispatch may not bind a buffer both ways.
pub fn source(file: &str, acc: Acc, tail: [&str; 2], aliased: bool) -> Result<String> {
    let Some(File { text: body, .. }) = FILES.iter().find(|f| f.name == file) else {
        return Err(Error::runtime(format!("wgpu: no shader file {file}")));
    };
    let math = if tail[0].is_empty() { "" } else { acc.math() };
    let text = [PRELUDE, acc.prelude(), math, body, tail[0], tail[1]].concat();
    Ok(if aliased {
        text.replace("var<storage, read>", "var<storage, read_write>")
    } else {
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use naga::valid::{Capabilities, ValidationFlags, Validator};

    fn validate(name: &str, acc: Acc, tail: [&str; 2]) {
        for aliased in [false, true] {
            let text = source(name, acc, tail, aliased).unwrap();
            let module = naga::front::wgsl::parse_str(&text)
                .unwrap_or_else(|e| panic!("{name} {acc:?}:\n{}", e.emit_to_string(&text)));
            let allowed = match acc {
                Acc::F32 | Acc::I32 => Capabilities::empty(),
                Acc::I64 => Capabilities::SHADER_INT64,
                Acc::F64 => Capabilities::SHADER_INT64 | Capabilities::FLOAT64,
            };
            Validator::new(ValidationFlags::all(), allowed)
                .validate(&module)
                .unwrap_or_else(|e| panic!("{name} {acc:?}:\n{}", e.emit_to_string(&text)));
        }
    }

    #[test]
    fn shader_files_every_type_are_valid() {
        let body = "fn value(i: u32) -> Acc { return m_max(load0(i), load1(i)); }\n";
        for file in FILES {
            for &acc in file.accs {
                let tail = if file.name == "pointwise" { body } else { "" };
                validate(file.name, acc, [tail, ""]);
            }
        }
        for kind in ["philox_uniform()", "philox_normal()", "Acc(philox_word())"] {
            let random = format!("fn value(i: u32) -> Acc {{ return {kind}; }}\n");
            validate("pointwise", Acc::F32, [PHILOX, &random]);
        }
    }

    #[test]
    fn has_functions_unknown_name_is_false() {
        assert!(Acc::F32.has_functions("return m_exp(a);"));
        assert!(!Acc::F64.has_functions("return m_exp(a);"));
        assert!(Acc::F64.has_functions("let sum_m_exp = a;"));
    }
}
