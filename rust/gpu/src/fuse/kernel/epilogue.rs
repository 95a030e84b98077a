//! Roots whose results others read: these run in the place of its stores.

use super::Writer;

/// How a file stores its result, and what it calls instead.
const STORE: &str = "store_y(";
const FINISH: &str = "finish_y(";
const STORE_TWO: &str = "store_two(";
const FINISH_TWO: &str = "finish_two(";
const STORE_LAST: &str = "store_last(";
const STORE_EACH: &str = "store_each(";
const FINISH_EACH: &str = "finish_each(";
/// As `store_each`, whose result begins with a word.
const EACH: &str = "fn finish_each(id: u32, offset: u32, n: u32) {
    if (!WORDS) {
        if (id < n) { finish_y(offset + id, element(id)); }
        return;
    }
    let i = 2u * id;
    if (i + 1u < n) {
        finish_two(offset + i, element(i), element(i + 1u));
    } else if (i < n) {
        finish_y(offset + i, element(i));
    }
}
";

/// A file's text, which calls what runs in the place of its stores.
pub(super) fn with_finishes(own: String) -> String {
    let calls = [
        (STORE, FINISH),
        (STORE_TWO, FINISH_TWO),
        (STORE_LAST, FINISH),
        (STORE_EACH, FINISH_EACH),
    ];
    let finished = |own: String, (store, finish)| own.replace(store, finish);
    let mut own = calls.into_iter().fold(own, finished);
    if own.contains(FINISH_EACH) {
        own.push_str(EACH);
    }
    own
}

impl Writer<'_, '_> {
    /// What the root calls in the place of its stores of one element and of two in one word: what is as narrow as
    /// these are is stored as they would be.
    pub(super) fn finish(&mut self) {
        let (first, zero) = (self.take(), self.take());
        let plan = self.plan;
        let narrow = plan.stores.iter().position(|s| s.place.size < 4);
        let name = narrow.map_or("0u".to_string(), |s| self.value(plan.stores[s].value));
        self.line(format_args!(
            "fn narrow_value(e: u32, v: Acc) -> u32 {{
    let i = e - {first};
    let zero = {zero};
    let t = encode(Y, v);
    let h = (t.x & lane_mask(Y)) ^ zero;
    let hh = t.y ^ zero;"
        ));
        let at = self.body(narrow);
        self.line(format_args!("return {name};\n}}"));
        let (Some(s), Some(at)) = (narrow, at) else {
            self.line(format_args!(
                "fn {FINISH}e: u32, v: Acc) {{ _ = narrow_value(e, v); }}
fn {FINISH_TWO}e: u32, a: Acc, b: Acc) {{ _ = narrow_value(e, a); _ = narrow_value(e + 1u, b); }}"
            ));
            return;
        };
        self.line(format_args!(
            "fn {FINISH}e: u32, v: Acc) {{\nlet i = e - {first};\nlet {name} = narrow_value(e, v);"
        ));
        self.store(s, &plan.stores[s], &at);
        let memory = plan.memory(&plan.stores[s].to);
        self.line(format_args!(
            "}}
fn {FINISH_TWO}e: u32, a: Acc, b: Acc) {{
    let i = e - {first};
    let low = narrow_value(e, a);
    atomicStore(&{memory}[word(I16, {at})], low | (narrow_value(e + 1u, b) << 16u));
}}"
        ));
    }
}
