//! What tests ask of the texts of shaders: that they are valid, closed against NaN, and mean what the parameter
//! blocks say.

use super::shader::{Acc, Field, Params, Shader};
use crate::dtype::DType;

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
    super::backends::translate(name, acc, text, &module, &info);
    (module, info)
}

/// Functions that decide by floats none of which is NaN by then, or whose result NaN overwrites; with `m_` also
/// those that have `r_` in its place.
const NEVER_NAN: &str = "
    m_acos m_atan m_bessel_j0 m_bessel_j1 m_digamma m_erfc m_erfinv m_expm1 m_floor_div
    m_igamma_fraction m_incomplete m_ln m_ndtri m_next_after m_polygamma m_pow m_sqrt m_tan m_zeta
    draw_binomial draw_gamma draw_poisson
    draw_successes slope_gamma slope_large angle inside largest lu tangent unscaled
";

/// Sees that nothing is decided in a way that a driver may turn round where a number is NaN: no choice between
/// floats by a comparison of floats, none that is negated, no inequality, and no function that drops NaN.
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

pub fn described(fields: &[Field]) -> Vec<(String, Field)> {
    let named = |f: &Field| (f.name.to_string(), Field { name: "", ..*f });
    fields.iter().map(named).collect()
}

/// The fields of the uniform that a module binds.
pub fn fields(module: &naga::Module) -> Vec<(String, Field)> {
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
