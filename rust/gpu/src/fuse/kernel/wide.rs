//! Kernels whose invocations make several units. All that an invocation reads is asked for before it computes or
//! writes anything, so that memory answers to all of it in one time, and words that hold several elements are
//! read once. Units of an invocation are a workgroup's width apart: neighbours read neighbouring words.
//!
//! What a unit gives is computed by a function `each` of the words that it reads, which is the text that other
//! kernels have in their place.

use super::super::Source;
use super::{format, mask, Plan, Writer};
use crate::geometry::WORKGROUP;
use crate::place::{Place, Walk};
use crate::Gpu;
use smallvec::SmallVec;
use std::fmt::Write;

/// Bytes of each tensor that one invocation reads or writes.
const BYTES: usize = 16;
/// Bytes of the text that copies of the bodies and what they call have at most: beyond it compilers take long, and
/// what is computed counts for more than what is moved.
const MAX_TEXT: usize = 64 << 10;

impl Plan<'_> {
    /// Units of one invocation; 0 where it has one and reads as it goes.
    pub(super) fn units(&self, gpu: &Gpu, n: usize) -> usize {
        let widest = self.places().map(|p| p.size).max().unwrap_or(4);
        if self.root.is_some() || !gpu.is_wide(n * widest / 4) {
            return 0;
        }
        let length: usize = self.nodes.iter().map(|(_, n)| n.body.length).sum();
        let mut times = (BYTES / (widest * self.lanes)).max(1);
        while times > 0 && times * self.lanes * length > MAX_TEXT {
            times /= 2;
        }
        match times * self.lanes {
            1 => 0,
            _ => times,
        }
    }

    /// Whether a unit is in one row of the innermost dimension.
    fn is_even(&self) -> bool {
        let last = self.dims.last();
        last.is_some_and(|d| d.n.is_multiple_of(self.lanes))
    }

    /// Whether the elements of a unit lie in whole words of their own, or in one word. So many strided places are in
    /// front of this one.
    fn is_whole(&self, place: &Place, strided: usize) -> bool {
        let bytes = (self.lanes * place.size).min(4);
        let even = |n: usize| (n * place.size).is_multiple_of(bytes);
        let in_rows = || {
            let (last, outer) = self.dims.split_last()?;
            let outer = outer.iter().all(|d| even(d.step[strided].unsigned_abs()));
            Some(self.is_even() && last.step[strided] == 1 && outer)
        };
        even(place.offset)
            && match place.walk {
                Walk::Still => false,
                Walk::Linear => true,
                Walk::Strided(_) => in_rows() == Some(true),
            }
    }

    /// What tells the text of such a kernel from others, beside what tells others.
    pub(super) fn kinds(&self) -> SmallVec<[u64; 16]> {
        let mut strided = 0;
        let mut kinds = SmallVec::from_slice(&[self.times as u64, self.is_even() as u64]);
        for (_, load) in &self.loads {
            kinds.push(self.is_whole(&load.place, strided) as u64);
            strided += load.place.is_strided() as usize;
        }
        kinds
    }
}

impl Writer<'_, '_> {
    pub(super) fn wide(&mut self) {
        let (times, lanes) = (self.plan.times, self.plan.lanes);
        let (n, zero) = (self.take(), self.take());
        self.each(&zero);
        self.start(times);
        self.line(format_args!(
            "let n = {n};\nif ((block + 1u) * {}u <= n) {{",
            WORKGROUP * times * lanes
        ));
        let word = self.word;
        for k in 0..times {
            self.line(format_args!("let u{k} = first + {}u;", k * WORKGROUP));
        }
        self.reads();
        for k in 0..times {
            self.computes(k);
            self.writes(k);
        }
        self.line(format_args!(
            "return;\n}}
for (var k = 0u; k < {times}u; k++) {{\nlet id = first + k * {WORKGROUP}u;"
        ));
        self.word = word;
        if lanes == 1 {
            self.line(format_args!("let i = id;\nif (i >= n) {{ return; }}"));
        } else {
            for s in 0..self.plan.stores.len() {
                self.line(format_args!("var o{s} = 0u;"));
            }
            self.line(format_args!(
                "for (var k = 0u; k < {lanes}u; k++) {{
let i = id * {lanes}u + k;\nif (i >= n) {{ break; }}"
            ));
        }
        self.one();
        self.line(format_args!("{}}}\n}}", if lanes > 1 { "}\n" } else { "" }));
    }

    /// The beginning of `main`: the number of the workgroup, and of the first unit of the invocation.
    fn start(&mut self, times: usize) {
        self.line(format_args!(
            "@compute @workgroup_size({WORKGROUP})
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {{
    let block = group.x + group.y * groups.x;
    let first = block * {}u + local;",
            WORKGROUP * times
        ));
    }

    /// The function that computes what is stored of the logical index `i` from the words of its elements.
    fn each(&mut self, zero: &str) {
        let plan = self.plan;
        let values = self.values();
        self.line(format_args!(
            "struct Values {{ {}: u32 }}",
            values.join(": u32, ")
        ));
        let mut words = String::new();
        for word in self.words() {
            let _ = write!(words, ", {word}: u32");
        }
        self.line(format_args!(
            "fn each(i: u32{words}) -> Values {{\nlet zero = {zero};\nposition = i;"
        ));
        let bases = self.scalars();
        for (j, (_, node)) in plan.nodes.iter().enumerate() {
            self.node(j, node, bases[j]);
        }
        self.line(format_args!("return Values({});\n}}", values.join(", ")));
    }

    /// The names of the words of a value.
    fn parts(&self, source: Source, size: usize) -> Vec<String> {
        let name = self.value(source);
        match size {
            8 => vec![name.clone(), name + "h"],
            _ => vec![name],
        }
    }

    /// The names of all words that are read.
    fn words(&self) -> Vec<String> {
        let loads = self.plan.loads.iter();
        let parts = loads.flat_map(|(i, l)| self.parts(Source::Load(*i), l.place.size));
        parts.collect()
    }

    /// The names of the words of what is stored, each once.
    fn values(&self) -> Vec<String> {
        let mut values: Vec<String> = Vec::new();
        for store in self.plan.stores {
            for v in self.parts(store.value, store.place.size) {
                if !values.contains(&v) {
                    values.push(v);
                }
            }
        }
        values
    }

    /// All words of all units.
    fn reads(&mut self) {
        let plan = self.plan;
        let all = || (0..plan.times).flat_map(|k| (0..plan.lanes).map(move |l| (k, l)));
        let word = self.word;
        for (k, l) in all() {
            let of = named(k, l);
            let at = match plan.lanes {
                1 => format!("u{k}"),
                lanes => format!("u{k} * {lanes}u + {l}u"),
            };
            self.line(format_args!("let i{of} = {at};"));
            self.word = word;
            if l > 0 && plan.is_even() {
                // Beside the first one in its row.
                let (last, first) = (plan.dims.len() - 1, named(k, 0));
                for d in 0..=last {
                    let more = if d == last {
                        format!(" + {l}u")
                    } else {
                        String::new()
                    };
                    self.line(format_args!("let c{d}{of} = c{d}{first}{more};"));
                }
                self.word += plan.dims.len();
                continue;
            }
            self.coordinates(&of);
        }
        let mut strided = 0;
        for (j, (_, load)) in plan.loads.iter().enumerate() {
            let (word, known) = (self.word, strided);
            let place = &load.place;
            if place.walk == Walk::Still {
                let e = self.element(place, &mut strided, "");
                self.load(j, load, &e, "");
                continue;
            }
            let whole = place.size < 4 && plan.lanes > 1 && plan.is_whole(place, strided);
            for (k, l) in all() {
                (self.word, strided) = (word, known);
                let of = named(k, l);
                let e = self.element(place, &mut strided, &of);
                if !whole {
                    self.load(j, load, &e, &of);
                    continue;
                }
                // The word of the first element of the unit that it holds.
                let (f, mask, in_word) = (format(place.size), mask(place.size), 4 / place.size);
                let (first, bit) = (l / in_word * in_word, l % in_word * 8 * place.size);
                let of_word = named(k, first);
                if l == first {
                    let b = plan.memory(&load.from);
                    let shift = match plan.lanes < in_word {
                        true => format!(" >> lane_bit({f}, {e})"),
                        false => String::new(),
                    };
                    self.line(format_args!("let w{j}{of} = {b}[word({f}, {e})]{shift};"));
                }
                self.line(format_args!(
                    "let x{j}{of} = (w{j}{of_word} >> {bit}u) & {mask};"
                ));
            }
        }
    }

    /// What unit `k` gives.
    fn computes(&mut self, k: usize) {
        let plan = self.plan;
        for l in 0..plan.lanes {
            let of = named(k, l);
            let mut args = format!("i{of}");
            for (i, load) in &plan.loads {
                for word in self.parts(Source::Load(*i), load.place.size) {
                    let still = load.place.walk == Walk::Still;
                    let _ = write!(args, ", {word}{}", if still { "" } else { &of });
                }
            }
            self.line(format_args!("let r{of} = each({args});"));
        }
    }

    /// The stores of unit `k`.
    fn writes(&mut self, k: usize) {
        let plan = self.plan;
        let places = || plan.loads.iter().map(|(_, l)| &l.place);
        let mut strided = places().filter(|p| p.is_strided()).count();
        let word = self.word;
        for store in plan.stores {
            let (b, size) = (plan.memory(&store.to), store.place.size);
            let (from, known) = (self.word, strided);
            let mut of_word = String::new();
            for l in 0..plan.lanes {
                (self.word, strided) = (from, known);
                let of = named(k, l);
                let e = self.element(&store.place, &mut strided, &of);
                let v = format!("r{of}.{}", self.value(store.value));
                match size {
                    8 => self.line(format_args!(
                        "{b}[2u * ({e})] = {v};\n{b}[2u * ({e}) + 1u] = {v}h;"
                    )),
                    4 => self.line(format_args!("{b}[{e}] = {v};")),
                    _ => {
                        let in_word = 4 / size;
                        let bit = l % in_word * 8 * size;
                        let _ = write!(
                            of_word,
                            "{}({v} << {bit}u)",
                            if bit > 0 { " | " } else { "" }
                        );
                        if l % in_word + 1 == in_word {
                            let f = format(size);
                            self.line(format_args!("{b}[word({f}, {e})] = {of_word};"));
                            of_word.clear();
                        }
                    }
                }
            }
        }
        // The next unit begins where this one did.
        if k + 1 < plan.times {
            self.word = word;
        }
    }

    /// The logical index `i` at the end of what there is.
    fn one(&mut self) {
        let plan = self.plan;
        self.coordinates("");
        let mut strided = 0;
        for (j, (_, load)) in plan.loads.iter().enumerate() {
            let e = self.element(&load.place, &mut strided, "");
            self.load(j, load, &e, "");
        }
        let mut args = self.words();
        args.insert(0, "i".to_string());
        self.line(format_args!("let r = each({});", args.join(", ")));
        for v in self.values() {
            self.line(format_args!("let {v} = r.{v};"));
        }
        for (s, store) in plan.stores.iter().enumerate() {
            let e = self.element(&store.place, &mut strided, "");
            self.store(s, store, &e);
        }
    }
}

/// What stands behind the names of lane `l` of unit `k`.
fn named(k: usize, l: usize) -> String {
    format!("_{k}_{l}")
}
