//! What `help` shows of an operator: its signatures, its summary, and the section of its name in the
//! Markdown of its family, looked up when somebody asks for it.
//!
//! A heading `## softmax` serves that name wherever it is found, `## linalg.norm` the one in `linalg`
//! only; `## absolute, abs` serves both. The section also serves the in-place form.

use crate::signature::Form;
use pytensorlib_core::schema::flag;
use std::collections::HashMap;
use std::sync::OnceLock;

const FAMILIES: [&str; 10] = [
    include_str!("../../core/src/ops/docs/pointwise.md"),
    include_str!("../../core/src/ops/docs/reduce.md"),
    include_str!("../../core/src/ops/docs/shape.md"),
    include_str!("../../core/src/ops/docs/index.md"),
    include_str!("../../core/src/ops/docs/sort.md"),
    include_str!("../../core/src/ops/docs/linalg.md"),
    include_str!("../../core/src/ops/docs/sparse.md"),
    include_str!("../../core/src/ops/docs/nn.md"),
    include_str!("../../core/src/ops/docs/random.md"),
    include_str!("../../core/src/ops/docs/optim.md"),
];

/// What parameters mean that many operators have, where a section does not say it.
const COMMON: [(&str, &str); 8] = [
    (
        "dtype",
        "dtype, optional\n    The type of the result's elements.",
    ),
    ("layout", "layout, optional\n    Only `torch.strided`."),
    ("device", "device, optional\n    Where the result lies."),
    ("pin_memory", "bool, default False\n    Has no effect."),
    (
        "requires_grad",
        "bool, default False\n    Whether to record what is done with the result.",
    ),
    (
        "memory_format",
        "memory_format, optional\n    The order of the result's elements in memory.",
    ),
    (
        "generator",
        "Generator, optional\n    Where the numbers come from; the default one otherwise.",
    ),
    ("out", ONE_OUT),
];

const ONE_OUT: &str = "Tensor, optional\n    Where the result is written, which is then returned.";
const SEVERAL_OUT: &str =
    "tuple of Tensor, optional\n    Where the results are written, which are then returned.";
const FUNCTION: u32 = flag::FN | flag::NN | flag::LINALG | flag::SPECIAL | flag::FFT;
const PARAMETERS: &str = "\nParameters\n----------\n";
const RETURNS: &str = "\nReturns\n-------\n";

/// The sections by the names in their headings.
fn sections() -> &'static HashMap<&'static str, &'static str> {
    static SECTIONS: OnceLock<HashMap<&str, &str>> = OnceLock::new();
    SECTIONS.get_or_init(|| {
        let texts = FAMILIES
            .iter()
            .flat_map(|family| family.split("\n## ").skip(1));
        let split = texts.filter_map(|text| text.split_once('\n'));
        let named = |(names, body): (&'static str, &'static str)| {
            names
                .split(',')
                .map(move |name| (name.trim(), body.trim_end()))
        };
        split.flat_map(named).collect()
    })
}

/// The section of a name in a namespace (`nn.functional`, or none).
fn section(place: &str, name: &str) -> Option<&'static str> {
    let plain = name.strip_suffix('_').unwrap_or(name);
    [name, plain].into_iter().find_map(|name| {
        let own = sections().get(format!("{place}.{name}").as_str());
        own.or_else(|| sections().get(name)).copied()
    })
}

/// The section with `note` before its parameters, and with those of `names` that it leaves out.
fn completed(section: &str, note: &str, names: &[&str]) -> String {
    let cut = [PARAMETERS, RETURNS]
        .iter()
        .find_map(|head| section.find(head));
    let (lead, rest) = section.split_at(cut.unwrap_or(section.len()));
    let (listed, rest) = match rest.strip_prefix(PARAMETERS) {
        Some(text) => text.split_at(text.find(RETURNS).unwrap_or(text.len())),
        None => ("", rest),
    };
    let described = |name: &str| {
        listed.lines().any(|line| {
            let head = line.split(" :").next().unwrap_or_default();
            head.split(", ").any(|n| n.trim_start_matches('*') == name)
        })
    };
    let wanted = COMMON
        .iter()
        .filter(|(n, _)| names.contains(n) && !described(n));
    let added: String = wanted.map(|(n, text)| format!("{n} : {text}\n")).collect();
    let mut text = lead.trim().to_string();
    if !note.is_empty() {
        text.push_str(if text.is_empty() { "" } else { "\n\n" });
        text.push_str(note);
    }
    text.push('\n');
    if !(listed.is_empty() && added.is_empty()) {
        text = format!("{text}{PARAMETERS}{listed}{added}");
    }
    format!("{text}{rest}").trim().to_string()
}

/// A summary with the public name of the first parameter.
fn public(summary: &str) -> String {
    let (mut text, mut rest) = (String::new(), summary);
    while let Some(i) = rest.find("self") {
        let (before, after) = (&rest[..i], &rest[i + 4..]);
        let part = before.ends_with(char::is_alphanumeric)
            || after.starts_with(|c: char| c.is_alphanumeric() || c == '-');
        text = text + before + if part { "self" } else { "input" };
        rest = after;
    }
    text + rest
}

/// The text of an operator, from its forms.
pub fn of_operator(qualified: &str, module: &str, forms: &[Form], inplace: bool) -> String {
    let place = match module.rsplit("._").next() {
        Some("nn") => "nn.functional",
        Some(name) => name,
        None => "",
    };
    let name = qualified.strip_prefix("Tensor.").unwrap_or(qualified);
    let (mut lines, mut summaries) = (Vec::new(), Vec::new());
    for form in forms {
        lines.extend(form.lines(qualified));
        let summary: Vec<&str> = form.op.entry.doc.lines().map(str::trim).collect();
        let summary = summary.join("\n");
        // What is a method only has no name for its tensor.
        summaries.push(match form.op.entry.flags & FUNCTION {
            0 => summary.trim().to_string(),
            _ => public(summary.trim()),
        });
    }
    lines.dedup();
    summaries.retain(|s| !s.is_empty());
    summaries.dedup();
    let has_inplace = |f: &Form| f.op.entry.flags & flag::INPLACE != 0;
    let note = match inplace {
        true => "Writes the result to `input` and returns it.".to_string(),
        false if forms.iter().any(has_inplace) => {
            format!("`{name}_` does the same in place: it writes the result to `input`.")
        }
        false => String::new(),
    };
    let names: Vec<&str> = forms.iter().flat_map(|f| f.names()).collect();
    let mut text = completed(section(place, name).unwrap_or_default(), &note, &names);
    if forms.iter().all(|f| f.op.schema.returns.len() > 1) {
        text = text.replace(ONE_OUT, SEVERAL_OUT);
    }
    let parts = [lines.join("\n"), summaries.join("\n"), text];
    let parts: Vec<String> = parts.into_iter().filter(|p| !p.is_empty()).collect();
    parts.join("\n\n")
}
