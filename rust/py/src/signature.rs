//! Signatures as Python writes them: for `help`, for `inspect.signature`, and in errors.

use crate::convert::argument;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyList, PyTuple};
use pytensorlib_core::ops::Op;
use pytensorlib_core::schema::{Param, Type, Value};
use std::fmt::Write;

/// An operator as a function or as a method, with or without `out=`.
#[derive(Clone, Copy)]
pub struct Form {
    pub op: &'static Op,
    pub method: bool,
    pub out: bool,
}

/// A parameter of a form; `self` of a method is none.
struct Item {
    name: &'static str,
    ty: String,
    default: Option<String>,
    keyword: bool,
    /// Whether it is a list that may be written as separate arguments.
    list: bool,
}

/// What PyTorch calls the first parameter of a function.
pub fn public_name(p: &Param) -> &'static str {
    match p.name {
        "self" => "input",
        name => name,
    }
}

/// Python's type of a parameter.
fn python_type(p: &Param) -> String {
    let text = match p.ty {
        Type::Tensor => "Tensor",
        Type::Operand => "Tensor | Number",
        Type::Scalar => "Number",
        Type::Int => "int",
        Type::Float => "float",
        Type::Bool => "bool",
        Type::Str => "str",
        Type::DType => "dtype",
        Type::Device => "device",
        Type::Layout => "layout",
        Type::MemoryFormat => "memory_format",
        Type::Generator => "Generator",
        Type::Ints(None) => "Sequence[int]",
        Type::Ints(Some(_)) => "int | Sequence[int]",
        Type::Floats => "Sequence[float]",
        Type::Bools => "Sequence[bool]",
        Type::Tensors => "Sequence[Tensor]",
        Type::OptionalTensors => "Sequence[Tensor | None]",
    };
    match p.nullable || matches!(p.default, Some(Value::None)) {
        true => format!("{text} | None"),
        false => text.into(),
    }
}

/// Says that a call has too many arguments, as Python does.
pub fn too_many(least: usize, takes: usize, given: usize) -> String {
    let range = match least < takes {
        true => format!("from {least} to "),
        false => String::new(),
    };
    format!(
        "takes {range}{takes} positional argument{} but {given} {} given",
        if takes == 1 { "" } else { "s" },
        if given == 1 { "was" } else { "were" }
    )
}

/// What a parameter takes, in the words of errors.
fn expected(p: &Param) -> &'static str {
    match p.ty {
        Type::Tensor | Type::Operand => "Tensor",
        Type::Scalar => "Number",
        Type::Int => "int",
        Type::Float => "float",
        Type::Bool => "bool",
        Type::Str => "str",
        Type::DType => "torch.dtype",
        Type::Device => "torch.device",
        Type::Layout => "torch.layout",
        Type::MemoryFormat => "torch.memory_format",
        Type::Generator => "torch.Generator",
        Type::Ints(_) => "tuple of ints",
        Type::Floats => "tuple of floats",
        Type::Bools => "tuple of bools",
        Type::Tensors | Type::OptionalTensors => "tuple of Tensors",
    }
}

/// Says what a parameter must be and what it got; of a list, which element is at fault. `place`
/// counts from 1, without `self` of a method.
pub fn mismatch(p: &Param, place: usize, obj: &Bound<'_, PyAny>) -> String {
    let class = |obj: &Bound<'_, PyAny>| {
        let name = obj.get_type().name();
        name.map_or("?".into(), |n| n.to_string())
    };
    let item = match p.ty {
        Type::Ints(_) => Some(Type::Int),
        Type::Floats => Some(Type::Float),
        Type::Bools => Some(Type::Bool),
        Type::Tensors => Some(Type::Tensor),
        _ => None,
    };
    let position = match p.keyword_only {
        true => String::new(),
        false => format!(" (position {place})"),
    };
    let real = p.ty == Type::Scalar && obj.is_instance_of::<PyComplex>();
    let text = format!(
        "argument '{}'{position} must be {}{}",
        public_name(p),
        if real { "a real " } else { "" },
        expected(p)
    );
    let list = obj.is_instance_of::<PyTuple>() || obj.is_instance_of::<PyList>();
    if let (Some(item), true, Ok(elements)) = (item, list, obj.try_iter()) {
        for (i, element) in elements.flatten().enumerate() {
            if !matches!(argument(item, 0, &element), Ok(Some(_))) {
                return format!(
                    "{text}, but found element of type {} at pos {i}",
                    class(&element)
                );
            }
        }
    }
    format!("{text}, not {}", class(obj))
}

/// A default as a Python literal; a list of equal numbers as one of them.
fn literal(p: &Param) -> Option<String> {
    let tuple = |list: &[i64]| match list {
        [] => "()".to_string(),
        [first, rest @ ..] if rest.iter().all(|n| n == first) => first.to_string(),
        _ => {
            let parts: Vec<String> = list.iter().map(i64::to_string).collect();
            format!("({})", parts.join(", "))
        }
    };
    match &p.default {
        Some(Value::Ints(list)) => Some(tuple(list)),
        Some(Value::Tensors(_)) => Some("()".into()),
        Some(Value::Float(x)) if x.is_infinite() => Some("float('inf')".into()),
        Some(value) => Some(format!("{value:?}")),
        // The binding takes `None` for these.
        None => (p.nullable && p.keyword_only).then(|| "None".into()),
    }
}

/// Python's type of what an operator returns, from the end of its signature.
fn result_type(text: &str) -> String {
    let text = text.rsplit(") -> ").next().unwrap_or_default().trim();
    match text.strip_suffix("[]") {
        Some(item) => format!("tuple[{item}, ...]"),
        None if text == "()" => "None".into(),
        None => match text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
            Some(list) => {
                let types = list.split(',').map(|r| r.split_whitespace().next());
                format!("tuple[{}]", types.flatten().collect::<Vec<_>>().join(", "))
            }
            None => text.into(),
        },
    }
}

impl Form {
    fn items(self) -> Vec<Item> {
        let params = &self.op.schema.params;
        let own = params.iter().skip(self.method as usize);
        let mut items: Vec<Item> = own
            .map(|p| Item {
                name: public_name(p),
                ty: python_type(p),
                default: literal(p),
                keyword: p.keyword_only,
                list: false,
            })
            .collect();
        // Only a list that is all there is: `x.view(2, 3)`, `zeros(2, 3)`.
        let mut places = params.iter().filter(|p| !p.keyword_only);
        let last = places.clone().next_back();
        let only = self.method || params.first().is_some_and(|p| p.name != "self");
        if only && places.nth(1 + self.method as usize).is_none() {
            if let (Some(item), Some(p)) = (items.first_mut(), last) {
                let listed = matches!(p.ty, Type::Ints(_)) && p.default.is_none();
                item.list = listed && !p.nullable && item.name == p.name;
            }
        }
        if self.out {
            let one = self.op.schema.returns.len() == 1;
            let ty = if one { "Tensor" } else { "tuple[Tensor, ...]" };
            items.push(Item {
                name: "out",
                ty: format!("{ty} | None"),
                default: Some("None".into()),
                keyword: true,
                list: false,
            });
        }
        items
    }

    /// `add(input: Tensor | Number, other: ...) -> Tensor`, and before it the same with a list
    /// written as separate arguments.
    pub fn lines(self, name: &str) -> Vec<String> {
        let items = self.items();
        let result = result_type(self.op.entry.schema);
        let line = |star| format!("{name}({}) -> {result}", listed(&items, star, true));
        match items.iter().any(|i| i.list) {
            true => vec![line(true), line(false)],
            false => vec![line(false)],
        }
    }

    /// The names that a caller may use, but for `self` of a method.
    pub fn names(self) -> Vec<&'static str> {
        self.items().into_iter().map(|i| i.name).collect()
    }
}

/// A list of parameters; `star` makes a list take separate arguments.
fn listed(items: &[Item], star: bool, types: bool) -> String {
    let (mut text, mut keywords) = (String::new(), false);
    for item in items {
        let separator = if text.is_empty() { "" } else { ", " };
        // Python's own words are no names: who passes these does so by place.
        let reserved = !types && matches!(item.name, "from" | "in" | "is" | "lambda");
        if star && item.list {
            let ty = if types { ": int" } else { "" };
            let _ = write!(text, "{separator}*{}{ty}", item.name);
            keywords = true;
            continue;
        }
        if item.keyword && !keywords {
            let _ = write!(text, "{separator}*, ");
            keywords = true;
        } else {
            text.push_str(separator);
        }
        text.push_str(item.name);
        if reserved {
            text.push('_');
        }
        match (types, &item.default) {
            (true, Some(default)) => {
                let _ = write!(text, ": {} = {default}", item.ty);
            }
            (true, None) => {
                let _ = write!(text, ": {}", item.ty);
            }
            (false, Some(default)) => {
                let _ = write!(text, "={default}");
            }
            (false, None) => {}
        }
        if reserved {
            text.push_str(", /");
        }
    }
    text
}

/// The signature that takes what the forms of a name take, as `inspect` reads it: the longest form's,
/// with what others add by name; what a form does not ask for has a default.
pub fn text_signature(forms: &[Form]) -> String {
    let places = |items: &[Item]| items.iter().filter(|i| !i.keyword).count();
    let mut all: Vec<Vec<Item>> = forms.iter().map(|f| f.items()).collect();
    // Stable: of equally long ones the first.
    all.sort_by_key(|items| std::cmp::Reverse(places(items)));
    let mut all = all.into_iter();
    let mut merged = all.next().unwrap_or_default();
    let mut star = true;
    for items in all {
        let n = places(&items);
        let same = std::iter::zip(&merged, &items[..n]).all(|(a, b)| a.name == b.name);
        let open = merged.iter_mut().enumerate();
        for (i, have) in open.filter(|(_, have)| have.default.is_none()) {
            have.default = match items.iter().find(|o| same && o.name == have.name) {
                Some(other) => other.default.clone(),
                // Not asked for by this form.
                None => (i >= n || have.keyword).then(|| "None".into()),
            };
        }
        if !same {
            continue;
        }
        star &= items.iter().any(|i| i.list);
        for item in items {
            if !merged.iter().any(|have| have.name == item.name) {
                let default = item.default.or(Some("None".into()));
                merged.push(Item { default, ..item });
            }
        }
    }
    merged.sort_by_key(|item| item.name == "out");
    // A parameter without a default may not follow one with.
    let mut optional = false;
    for item in merged.iter_mut().filter(|i| !i.keyword) {
        optional |= item.default.is_some();
        if optional && item.default.is_none() {
            item.default = Some("None".into());
        }
    }
    let rest = listed(&merged, star, false);
    match forms.first().is_some_and(|f| f.method) {
        true if rest.is_empty() => "($self)".into(),
        true => format!("($self, {rest})"),
        false => format!("({rest})"),
    }
}
