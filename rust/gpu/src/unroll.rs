//! Loops written out. A line `for (var i = 0u; ...; i++) { // unroll N` becomes N copies of its body, in
//! each of which `i` is a constant: arrays that it indexes can live in registers, which a driver's own
//! unrolling gives up on where a body is long. N is made of constants of the text; where it is 0 the loop
//! stays.
//!
//! A line `var x: array<T, N>; // apart` becomes N variables, `x_0` and so on, and `x[i]` the one that `i`
//! names, which has to be made of constants there: cooperative matrices in arrays stay in memory.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

pub(super) const MARK: &str = "// unroll ";
const APART: &str = "// apart";

type Known = HashMap<String, u32>;

/// The text with its marked loops written out.
pub(super) fn unrolled(text: &str) -> String {
    if !text.contains(MARK) {
        return text.to_string();
    }
    let mut known = Known::new();
    let constant = |line| -> Option<(&str, &str)> {
        let (name, rest) = str::strip_prefix(line, "const ")?.split_once(": ")?;
        Some((name, rest.split_once(" = ")?.1.split(';').next()?))
    };
    let constants: Vec<_> = text.lines().filter_map(constant).collect();
    // Some stand in front of what they are made of.
    loop {
        let before = known.len();
        for (name, value) in &constants {
            if let Some(value) = Reader::value(value, &known) {
                known.insert(name.to_string(), value);
            }
        }
        if known.len() == before {
            break;
        }
    }
    let mut out = String::with_capacity(2 * text.len());
    let lines: Vec<&str> = text.lines().collect();
    let apart = lines.iter().filter_map(|l| Some(array_of(l)?.0)).collect();
    expand(&lines, &mut known, &apart, &mut out);
    out
}

/// The name, the type of elements and the length of an array that falls apart.
fn array_of(line: &str) -> Option<(&str, &str, &str)> {
    let code = line.trim().strip_suffix(APART)?.trim();
    let (name, rest) = code.strip_prefix("var ")?.split_once(": array<")?;
    let (element, length) = rest.strip_suffix(">;")?.split_once(", ")?;
    Some((name, element, length))
}

/// A line with the variables in the place of elements of arrays that fell apart.
fn named(line: &str, known: &Known, apart: &HashSet<&str>) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(open) = rest.find('[') {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let start = rest[..open].rfind(|c| !is_name(c)).map_or(0, |i| i + 1);
        let index = rest[open + 1..]
            .split_once(']')
            .filter(|_| apart.contains(&rest[start..open]));
        let value = index.and_then(|(index, _)| Reader::value(index, known));
        match (index, value) {
            (Some((_, behind)), Some(value)) => {
                let _ = write!(out, "{}_{value}", &rest[..open]);
                rest = behind;
            }
            _ => {
                out.push_str(&rest[..open + 1]);
                rest = &rest[open + 1..];
            }
        }
    }
    out + rest
}

fn expand(lines: &[&str], known: &mut Known, apart: &HashSet<&str>, out: &mut String) {
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        at += 1;
        if let Some((name, element, length)) = array_of(line) {
            for i in 0..Reader::value(length, known).unwrap_or(0) {
                let _ = writeln!(out, "var {name}_{i}: {element};");
            }
            continue;
        }
        let Some(copies) = Loop::of(line, known) else {
            out.push_str(&named(line, known, apart));
            out.push('\n');
            continue;
        };
        let begin = at;
        let mut depth = copies.body.is_none() as usize;
        while depth > 0 {
            let code = lines[at].split("//").next().unwrap_or("");
            depth += code.matches('{').count();
            depth -= code.matches('}').count();
            at += 1;
        }
        let inline = copies.body.as_slice();
        let body = if inline.is_empty() {
            &lines[begin..at - 1]
        } else {
            inline
        };
        for copy in 0..copies.count {
            let i = copy * copies.step;
            let _ = writeln!(out, "{{\nconst {}: u32 = {i}u;", copies.name);
            let outer = known.insert(copies.name.to_string(), i);
            expand(body, known, apart, out);
            match outer {
                Some(outer) => known.insert(copies.name.to_string(), outer),
                None => known.remove(copies.name),
            };
            out.push_str("}\n");
        }
    }
}

struct Loop<'a> {
    name: &'a str,
    step: u32,
    count: u32,
    /// Where it is on the same line.
    body: Option<&'a str>,
}

impl<'a> Loop<'a> {
    /// The marked loop that a line begins.
    fn of(line: &'a str, known: &Known) -> Option<Loop<'a>> {
        let (code, count) = line.split_once(MARK)?;
        let (head, body) = code.trim().strip_prefix("for (var ")?.split_once(") {")?;
        let body = body.trim().strip_suffix('}');
        let name = head.strip_suffix("++").or(Some(head))?.split(' ').next()?;
        let step = match head.split_once("+= ") {
            Some((_, step)) => Reader::value(step, known)?,
            None => 1,
        };
        let count = Reader::value(count, known).filter(|&n| n > 0)?;
        Some(Loop {
            name,
            step,
            count,
            body,
        })
    }
}

/// Reads an expression of unsigned integers, truths among them as 0 and 1.
struct Reader<'a> {
    words: Vec<&'a str>,
    at: usize,
    known: &'a Known,
}

const BINARY: [&[&str]; 5] = [
    &["||"],
    &["&&"],
    &["==", "!=", "<", ">", "<=", ">="],
    &["+", "-"],
    &["*", "/", "%"],
];

impl<'a> Reader<'a> {
    /// The value of an expression of what is known.
    fn value(text: &'a str, known: &'a Known) -> Option<u32> {
        let mut reader = Reader {
            words: split(text),
            at: 0,
            known,
        };
        let value = reader.level(0)?;
        (reader.at == reader.words.len()).then_some(value)
    }

    fn next(&mut self) -> Option<&'a str> {
        self.at += 1;
        self.words.get(self.at - 1).copied()
    }

    fn takes(&mut self, word: &str) -> Option<()> {
        (self.next()? == word).then_some(())
    }

    fn level(&mut self, level: usize) -> Option<u32> {
        let Some(operators) = BINARY.get(level) else {
            return self.atom();
        };
        let mut value = self.level(level + 1)?;
        while let Some(&op) = self.words.get(self.at).filter(|w| operators.contains(w)) {
            self.at += 1;
            let (a, b) = (value, self.level(level + 1)?);
            value = match op {
                "+" => a.checked_add(b)?,
                "-" => a.checked_sub(b)?,
                "*" => a.checked_mul(b)?,
                "/" => a.checked_div(b)?,
                "%" => a.checked_rem(b)?,
                "==" => (a == b) as u32,
                "!=" => (a != b) as u32,
                "<" => (a < b) as u32,
                ">" => (a > b) as u32,
                "<=" => (a <= b) as u32,
                ">=" => (a >= b) as u32,
                "||" => a | b,
                _ => a & b,
            };
        }
        Some(value)
    }

    fn atom(&mut self) -> Option<u32> {
        let word = self.next()?;
        match word {
            "true" => return Some(1),
            "false" => return Some(0),
            "!" => return Some(1 - self.atom()?.min(1)),
            "(" => {
                let value = self.level(0)?;
                return self.takes(")").map(|()| value);
            }
            "select" | "min" | "max" => {
                self.takes("(")?;
                let a = self.level(0)?;
                self.takes(",")?;
                let b = self.level(0)?;
                let value = match word {
                    "min" => a.min(b),
                    "max" => a.max(b),
                    _ => {
                        self.takes(",")?;
                        if self.level(0)? == 0 {
                            a
                        } else {
                            b
                        }
                    }
                };
                return self.takes(")").map(|()| value);
            }
            _ => {}
        }
        let number = word.strip_suffix('u').unwrap_or(word);
        number
            .parse()
            .ok()
            .or_else(|| self.known.get(word).copied())
    }
}

/// The words, numbers and operators of an expression.
fn split(text: &str) -> Vec<&str> {
    let mut words = vec![];
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = match first {
            c if name(c) => rest.find(|c| !name(c)).unwrap_or(rest.len()),
            _ if ["==", "!=", "<=", ">=", "&&", "||"].contains(&rest.get(..2).unwrap_or("")) => 2,
            c => c.len_utf8(),
        };
        words.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_those_of_the_text() {
        let known = HashMap::from([("BM".to_string(), 128), ("ALONG".to_string(), 1)]);
        let value = |text| Reader::value(text, &known);
        assert_eq!(value("BM / (4u * 2u) + 3u"), Some(19));
        assert_eq!(value("(BM * 8u / 4u + 255u) / 256u"), Some(1));
        assert_eq!(value("select(BM, 32u, ALONG)"), Some(32));
        assert_eq!(value("select(1u, 2u, BM >= 64u && !ALONG)"), Some(1));
        assert_eq!(value("max(BM, 3u) - min(1u, 2u)"), Some(127));
        assert_eq!(value("BM / UNKNOWN"), None);
        assert_eq!(value("BM / 0u"), None);
        assert_eq!(value("1u -"), None);
    }

    #[test]
    fn arrays_fall_apart_where_their_indices_are_known() {
        let text = "const N: u32 = 2u;\nfn f() {\n\
                    var acc: array<Sum, N>; // apart\n\
                    for (var i = 0u; i < N; i++) { // unroll N\n\
                    let at = i;\nacc[N - 1u - i] = f(acc[i * 1u], b[at]);\n}\n}\n";
        let out = unrolled(text);
        assert!(out.contains("var acc_0: Sum;\nvar acc_1: Sum;\n"));
        assert!(out.contains("acc_1 = f(acc_0, b[at]);"));
        assert!(out.contains("acc_0 = f(acc_1, b[at]);"));
        assert!(!out.contains("acc["));
    }

    #[test]
    fn marked_loops_are_written_out_and_others_stay() {
        let text = "const M: u32 = N * 4u;\nconst N: u32 = 2u;\nfn f() {\n\
                    for (var i = 0u; i < N; i++) { // unroll N\n\
                    for (var k = 0u; k < M; k += 4u) { // unroll M / 4u\n\
                    if (k == 0u) { a[i] = k; }\n}\n}\n\
                    for (var j = 0u; j < p.n; j++) { b[j] = j; }\n\
                    for (var l = 0u; l < N + zero; l++) { c[l] = l; } // unroll N\n\
                    for (var j = 0u; j < p.n; j++) { // unroll p.n\n}\n}\n";
        let out = unrolled(text);
        let copies = |what: &str| out.matches(what).count();
        assert_eq!(copies("const i: u32 = 1u;"), 1);
        assert_eq!(copies("const k: u32 = 4u;"), 2);
        assert_eq!(copies("a[i] = k;"), 4);
        assert_eq!(copies("for (var j"), 2);
        assert_eq!((copies("for (var l"), copies("c[l] = l;")), (0, 2));
        let count = |c| out.matches(c).count();
        assert_eq!(count('{'), count('}'));
    }
}
