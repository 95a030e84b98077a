//! A shader's whole text: numbers as `const` lines, what it names of the preludes and the math
//! files, the file itself, and a generated tail.

use super::geometry::WORKGROUP;
use super::shader::{Acc, Numbers, Source};
use crate::dtype::{self, DType};
use crate::error::Result;
use crate::{bail, ensure};
use std::collections::HashSet;
use std::fmt::Write;

/// What every text knows: the formats of elements, whose numbers are those of their types, and the
/// invocations of a workgroup.
const COMMON: Numbers = &[
    ("WORKGROUP", WORKGROUP as u32),
    ("BOOL", DType::Bool as u32),
    ("U8", DType::U8 as u32),
    ("I8", DType::I8 as u32),
    ("I16", DType::I16 as u32),
    ("I32", DType::I32 as u32),
    ("I64", DType::I64 as u32),
    ("F16", DType::F16 as u32),
    ("BF16", DType::BF16 as u32),
    ("F32", DType::F32 as u32),
    ("F64", DType::F64 as u32),
    ("C64", DType::C64 as u32),
    ("C128", DType::C128 as u32),
];

pub(super) const PRELUDE: &str = include_str!("../../../shaders/prelude.wgsl");

macro_rules! parts {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../shaders/prelude_", $name, ".wgsl")))),*]
    };
}
/// What a file takes with a line `// uses ...`, beside `math`, the type's functions. `store` is `lanes`
/// where elements share words.
const PARTS: &[(&str, &str)] = parts! {
    "store" "lanes" "each" "rows" "index" "fault" "dims" "parts" "strided" "attention" "conv" "cooperative"
};

/// The values that a launcher gives to `override` lines.
pub(super) type Constants<'a> = &'a [(&'static str, u32)];

impl Source {
    /// The whole text. With `aliased`, read-only bindings become read_write: one dispatch may not
    /// bind a buffer both ways.
    pub(super) fn text(
        &self,
        acc: Acc,
        constants: Constants,
        tail: [&str; 2],
        aliased: bool,
    ) -> Result<String> {
        ensure!(
            self.accs.contains(&acc),
            NoKernel,
            "wgpu: {} does not compute in {}",
            self.name,
            acc.dtype()
        );
        ensure!(
            acc.has_functions(tail[0]),
            NoKernel,
            "wgpu: {}: a function of this op has no {} kernel",
            self.name,
            acc.dtype()
        );
        let (own, library) = self.parts(acc, constants, tail, true)?;
        let out = with_library(&self.text, self.numbers, library.into_iter(), &own);
        Ok(match aliased {
            true => out.replace("var<storage, read>", "var<storage, read_write>"),
            false => out,
        })
    }

    /// The file with its tail, and what they may take from. Where it is not `whole`, it stores elements one by
    /// one, whatever it says of pairs.
    pub(super) fn parts(
        &self,
        acc: Acc,
        constants: Constants,
        tail: [&str; 2],
        whole: bool,
    ) -> Result<(String, Vec<&'static str>)> {
        let mut own = self.specialised(constants, whole)?;
        tail.iter().for_each(|text| own.push_str(text));
        let uses = self.text.lines().find_map(|l| l.strip_prefix("// uses "));
        let mut library = vec![PRELUDE, acc.prelude()];
        let mut calls = !tail[0].is_empty();
        for part in uses.into_iter().flat_map(|names| names.split(", ")) {
            let plain = part == "store" && !own.contains(LANES);
            let part = if part == "store" && !plain {
                "lanes"
            } else {
                part
            };
            match PARTS.iter().find(|(name, _)| *name == part) {
                Some((_, text)) => library.push(text),
                None if part == "math" => calls = true,
                None => bail!(Runtime, "wgpu: {}: no part {part:?}", self.name),
            }
        }
        if calls {
            library.push(acc.math());
        }
        Ok((own, library))
    }

    /// The file with each `override` as a `const`, so that arrays may be as long as it says; with
    /// plain words in the place of atomic ones where every element of `y` is a whole word, or those of a word are stored
    /// together.
    fn specialised(&self, constants: Constants, whole: bool) -> Result<String> {
        let mut out = String::with_capacity(self.text.len() + 256);
        let mut found = HashSet::new();
        let mut lanes = true;
        let mut owned = false;
        for line in self.text.lines().filter(|l| !is_directive(l)) {
            let declared = line
                .strip_prefix("override ")
                .and_then(|l| l.split_once(": "));
            let Some((name, rest)) = declared else {
                out.push_str(line);
                out.push('\n');
                continue;
            };
            let given = constants.iter().rev().find(|(known, _)| *known == name);
            let given = given.map(|&(known, value)| {
                found.insert(known);
                value
            });
            if name == "Y" {
                let default = |(known, _): &&(&str, u32)| rest.contains(&format!("= {known};"));
                let format = given.or_else(|| Some(COMMON.iter().find(default)?.1));
                let whole = |n: u32| dtype::ALL.iter().any(|d| *d as u32 == n && d.size() >= 4);
                lanes = !format.is_some_and(whole);
            }
            owned |= whole && matches!(name, "PAIRS" | "WORDS") && given == Some(1);
            let _ = match (given, rest.split(' ').next()) {
                (None, _) => writeln!(out, "const {name}: {rest}"),
                (Some(v), Some("bool")) => writeln!(out, "const {name}: bool = {};", v != 0),
                (Some(v), _) => writeln!(out, "const {name}: u32 = {v}u;"),
            };
        }
        if let Some((name, _)) = constants.iter().find(|(name, _)| !found.contains(name)) {
            bail!(
                Runtime,
                "wgpu: {}: the shader did not compile: it has no line \"override {name}: ...\"",
                self.name
            );
        }
        Ok(match lanes && !owned {
            true => out,
            false => out.replace(LANES, " y: array<u32>"),
        })
    }
}

/// Whether a line has to stand in front of all declarations.
pub(super) fn is_directive(line: &str) -> bool {
    line.starts_with("enable ") || line.starts_with("diagnostic(")
}

/// A text with the directives of `file` and the numbers in front, and what it names of the library.
pub(super) fn with_library<'a>(
    file: &str,
    numbers: &[Numbers],
    library: impl Iterator<Item = &'a str>,
    own: &str,
) -> String {
    let mut out = String::with_capacity(16 << 10);
    for line in file.lines().filter(|l| is_directive(l)) {
        let _ = writeln!(out, "{line}");
    }
    for (name, number) in [COMMON].iter().chain(numbers).copied().flatten() {
        let _ = writeln!(out, "const {name}: u32 = {number}u;");
    }
    let items: Vec<Item> = library.flat_map(items).collect();
    for text in named(&items, own) {
        out.push_str(text);
    }
    out.push_str(own);
    out
}

/// How a file that uses `store` declares its result.
const LANES: &str = " y: array<atomic<u32>>";

/// A declaration of a library: its name and its text.
pub(super) type Item<'a> = (&'a str, &'a str);

/// The declarations of a text, which begin at the left margin.
pub(super) fn items(text: &str) -> Vec<Item<'_>> {
    let mut starts = vec![];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let mut words = words(line);
        if let Some("fn" | "const" | "alias" | "struct" | "var") = words.next() {
            // What memory a variable lies in stands in front of its name.
            let name = words.find(|w| !matches!(*w, "workgroup" | "private"));
            if line.starts_with(|c: char| c.is_ascii_lowercase()) {
                starts.push((name.unwrap_or(""), at));
            }
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).map(|s| s.1).chain([text.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(&(name, from), to)| (name, &text[from..to]))
        .collect()
}

/// The names, numbers and keywords of a text, comments left out.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let code = |line: &'_ str| -> usize { line.find("//").unwrap_or(line.len()) };
    text.lines()
        .map(move |line| &line[..code(line)])
        .flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
        .filter(|w| !w.is_empty())
}

/// The texts of the items that `root` names, and of those that these name.
pub(super) fn named<'a>(items: &[Item<'a>], root: &str) -> Vec<&'a str> {
    let mut wanted = vec![false; items.len()];
    let mut open: Vec<&str> = vec![root];
    while let Some(text) = open.pop() {
        let names: HashSet<&str> = words(text).collect();
        for (item, wanted) in items.iter().zip(&mut wanted) {
            if !*wanted && names.contains(item.0) {
                *wanted = true;
                open.push(item.1);
            }
        }
    }
    let kept = items.iter().zip(wanted).filter(|(_, wanted)| *wanted);
    kept.map(|(item, _)| item.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_follows_names_and_leaves_out_comments() {
        let library =
            "// about one\nconst one: u32 = 1u;\nfn two() -> u32 {\n    return one; // four\n}\n\
                       var<private> three: u32;\nfn four() {}\n// end\n";
        let items = items(library);
        let names: Vec<_> = items.iter().map(|i| i.0).collect();
        assert_eq!(names, ["one", "two", "three", "four"]);
        let of = |root| named(&items, root).len();
        assert_eq!(of("two()"), 2);
        assert_eq!(of("three = 1; // four"), 1);
        assert_eq!(of("fourth"), 0);
    }

    /// Kernels see only the functions that they name: here all are looked at.
    #[test]
    fn every_function_of_the_library_is_valid() {
        for &acc in Acc::EACH {
            let mut text = String::new();
            for (name, number) in COMMON {
                let _ = writeln!(text, "const {name}: u32 = {number}u;");
            }
            for part in [PRELUDE, acc.prelude(), acc.math()] {
                text.push_str(part);
            }
            let (module, info) = super::super::checks::valid("the library", acc, &text);
            super::super::checks::assert_closed("the library", &module, &info);
        }
    }
}
