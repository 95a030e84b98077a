//! Checks WGSL that a program brings, beyond what wgpu checks.

use crate::ensure;
use crate::error::Result;
use wgpu::naga::{self, AddressSpace, Handle, Module, Type};

/// Bytes that the variables of an invocation take at most, of those larger than a vector. The compiler of
/// software Vulkan needs up to 7 seconds for these, and more than 25 for 4 KiB that are copied or looped over.
pub const MOST: u32 = 1024;

/// Words that stand at the beginning of a declaration which a body cannot have, and attributes.
const WORDS: [&str; 4] = ["override", "enable", "requires", "diagnostic"];
const ATTRIBUTES: [&str; 8] = [
    "group",
    "binding",
    "id",
    "compute",
    "vertex",
    "fragment",
    "workgroup_size",
    "builtin",
];

/// An error where a body declares what belongs to the file that it becomes a part of.
pub fn check_body(name: &str, body: &str) -> Result<()> {
    let text = without_comments(body);
    let word = |c: char| c == '_' || c.is_alphanumeric();
    let mut rest = &text[..];
    while let Some(at) = rest.find(|c| word(c) || c == '@') {
        let attribute = rest[at..].starts_with('@');
        let from = rest[at..].trim_start_matches('@').trim_start();
        let end = from.find(|c| !word(c)).unwrap_or(from.len());
        let (found, after) = from.split_at(end);
        let refused = match attribute {
            true => ATTRIBUTES.contains(&found),
            false => WORDS.contains(&found),
        };
        let sign = if attribute { "@" } else { "" };
        ensure!(
            !refused,
            Runtime,
            "{name}: a body is functions, structures, constants and variables of an invocation; \
             bindings, overrides, directives and entry points are made for it, but found '{sign}{found}'"
        );
        // What is no name after all, as a sign alone.
        rest = match end {
            0 => &rest[at + 1..],
            _ => after,
        };
    }
    Ok(())
}

/// The text with a space for each comment; those in `/*` may hold others.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
            continue;
        }
        if !rest.starts_with("/*") {
            out.push('/');
            rest = &rest[1..];
            continue;
        }
        out.push(' ');
        let mut depth = 0;
        while !rest.is_empty() {
            let skip = if rest.starts_with("/*") {
                depth += 1;
                2
            } else if rest.starts_with("*/") {
                depth -= 1;
                2
            } else {
                rest.chars().next().map_or(1, char::len_utf8)
            };
            rest = &rest[skip..];
            if depth == 0 {
                break;
            }
        }
    }
    out.push_str(rest);
    out
}

/// An error where the variables of an invocation take more than [`MOST`]. What is no WGSL passes: who compiles
/// it says why.
pub(super) fn check_variables(name: &str, text: &str) -> Result<()> {
    let Ok(module) = naga::front::wgsl::parse_str(text) else {
        return Ok(());
    };
    let size = |ty: Handle<Type>| bytes(&module, ty);
    let globals = module.global_variables.iter().map(|(_, v)| v);
    let private = globals.filter(|v| v.space == AddressSpace::Private);
    let entries = module.entry_points.iter().map(|e| &e.function);
    let functions = module.functions.iter().map(|(_, f)| f).chain(entries);
    let own = functions.flat_map(|f| f.local_variables.iter().map(|(_, v)| v.ty));
    let all = private.map(|v| v.ty).chain(own).map(size);
    let total: u64 = all.filter(|&n| n > VECTOR).sum();
    // Values that are not variables, but become some where an index chooses of them.
    let types = module.types.iter().map(|(ty, _)| ty);
    let largest = types.filter(|&ty| !is_bound(&module, ty)).map(size).max();
    let found = total.max(largest.unwrap_or(0));
    ensure!(
        found <= MOST as u64,
        Runtime,
        "{name}: arrays, structures and matrices of an invocation may take {MOST} bytes together, but \
         those of this text take {found}; keep what is larger in an input, or share the work out among \
         calls"
    );
    Ok(())
}

/// The bytes of the largest value that is no array, structure or matrix.
const VECTOR: u64 = 32;

/// Whether a type is that of a binding, or without an end.
fn is_bound(module: &Module, ty: Handle<Type>) -> bool {
    let mut globals = module.global_variables.iter();
    globals.any(|(_, v)| v.ty == ty && v.binding.is_some())
}

fn bytes(module: &Module, ty: Handle<Type>) -> u64 {
    let size = module.types[ty].inner.try_size(module.to_ctx());
    size.map_or(u64::MAX >> 1, u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_that_declare_what_is_made_for_them_are_refused() {
        for text in [
            "@group(0) @binding(7) var<storage> z: array<u32>;",
            "@ binding ( 1 ) var<uniform> q: vec4<u32>;",
            "override N: u32 = 3u;",
            "/* a /* b */ c */ override\nN = 1;",
            "@compute @workgroup_size(1) fn other() {}",
            "fn op(a: Acc) -> Acc { return a; } @id(3) override x: f32;",
            "enable f16;",
        ] {
            let e = check_body("op", text).unwrap_err();
            assert!(e.text.starts_with("op: a body is functions"), "{e}");
        }
        for text in [
            "// override @group\nfn op(a: Acc) -> Acc { return a; }",
            "fn op(a: Acc) -> Acc { let overrides = a / 2.0; return overrides; } /* @compute */",
            "@must_use fn two(group: Acc) -> Acc { return group * 2.0; }",
            "fn op(a: Acc) -> Acc { return a / a; } /",
            "@",
            "fn op(ä: Acc) -> Acc { return ä; } /* ä",
        ] {
            assert!(check_body("op", text).is_ok(), "{text}");
        }
    }

    #[test]
    fn variables_of_an_invocation_are_counted_together() {
        let text = |n: usize, body: &str| {
            format!(
                "var<private> seen: array<f32, {n}>;\nfn f() -> f32 {{ {body} }}\n\
                 @compute @workgroup_size(1) fn main() {{ seen[0] = f(); }}"
            )
        };
        let f = "var own: array<f32, 128>; return own[u32(seen[1])];";
        assert!(check_variables("op", &text(128, f)).is_ok());
        let e = check_variables("op", &text(129, f)).unwrap_err();
        assert!(
            e.text
                .contains("take 1024 bytes together, but those of this text take 1028"),
            "{e}"
        );
        let value = "return array<f32, 300>()[u32(seen[1])];";
        assert!(check_variables("op", &text(4, value)).is_err());
        let scalars = "var a = 1.0; var b = a; return a + b;";
        assert!(check_variables("op", &text(256, scalars)).is_ok());
        assert!(check_variables("op", "no WGSL").is_ok());
    }
}
