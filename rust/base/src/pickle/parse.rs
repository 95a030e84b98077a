//! From bytes to nodes.

use super::{corrupt, refused, Allowance, Change, Error, Fault, Kind, Node, Program, Result, Step};
use std::collections::HashMap;

/// `None`, `False`, `True`, the empty tuple and the bytes 0 to 255 have one node each.
const FALSE: u32 = 1;
const TRUE: u32 = 2;
const EMPTY: u32 = 3;
const BYTES: u32 = 4;
/// Bytes of memory for one byte of a file: plain small objects need about ten.
const RATIO: u64 = 12;
const LONGEST_NAME: usize = 1024;

/// What was remembered, by number: in turn as a rule, any number in a file that means harm.
#[derive(Default)]
struct Memo {
    dense: Vec<u32>,
    sparse: HashMap<u32, u32>,
}

impl Memo {
    fn put(&mut self, i: u32, node: u32) {
        let next = self.dense.len();
        match i as usize {
            i if i < next => self.dense[i] = node,
            i if i == next => self.dense.push(node),
            _ => {
                self.sparse.insert(i, node);
            }
        }
    }
    fn get(&self, i: u32) -> Option<u32> {
        let dense = self.dense.get(i as usize);
        dense.or_else(|| self.sparse.get(&i)).copied()
    }
}

struct Parser<'a> {
    data: &'a [u8],
    at: usize,
    nodes: Vec<Node>,
    items: Vec<u32>,
    steps: Vec<Step>,
    stack: Vec<u32>,
    /// Heights of the stack at the open marks.
    marks: Vec<u32>,
    memo: Memo,
    names: HashMap<(&'a [u8], &'a [u8]), u32>,
    globals: Vec<(String, String)>,
    allowance: Allowance,
}

/// Reads the pickle at `at`, which lies in a file of `size` bytes.
pub fn parse(data: &[u8], at: usize, size: u64) -> Result<Program> {
    // Nodes hold places in 32 bits; the pickle of 100,000 tensors takes 20 MB.
    let data = &data[..data.len().min(u32::MAX as usize)];
    let mut nodes = vec![
        Node::new(Kind::None, at, 0, 0, 0),
        Node::wide(Kind::Bool, at, 0),
        Node::wide(Kind::Bool, at, 1),
        Node::new(Kind::Tuple, at, 0, 0, 0),
    ];
    nodes.extend((0..256).map(|n| Node::wide(Kind::Int, at, n)));
    let parser = Parser {
        data,
        at,
        nodes,
        items: Vec::new(),
        steps: Vec::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: Memo::default(),
        names: HashMap::new(),
        globals: Vec::new(),
        allowance: Allowance::new(size, RATIO),
    };
    parser.run()
}

impl<'a> Parser<'a> {
    fn run(mut self) -> Result<Program> {
        loop {
            let start = self.at;
            let code = self.read(1)?[0];
            match code {
                b'.' => break,
                0x80 => {
                    let version = self.read(1)?[0];
                    if version != 2 {
                        return refused(format!(
                            "pickle protocol {version}: checkpoints use protocol 2"
                        ));
                    }
                }
                b'(' => {
                    self.allowance.take(4, start)?;
                    self.marks.push(self.stack.len() as u32);
                }
                b'N' => self.push(0)?,
                0x88 => self.push(TRUE)?,
                0x89 => self.push(FALSE)?,
                b')' => self.push(EMPTY)?,
                b'K' => {
                    let n = self.read(1)?[0];
                    self.push(BYTES + n as u32)?;
                }
                b'M' => {
                    let n = u16::from_le_bytes(self.array()?);
                    self.add(Node::wide(Kind::Int, start, n as u64))?;
                }
                b'J' => {
                    let n = i32::from_le_bytes(self.array()?);
                    self.add(Node::wide(Kind::Int, start, n as i64 as u64))?;
                }
                0x8a => self.long(start)?,
                b'G' => {
                    let bits = u64::from_be_bytes(self.array()?);
                    self.add(Node::wide(Kind::Float, start, bits))?;
                }
                b'X' => {
                    let n = u32::from_le_bytes(self.array()?);
                    self.text(Kind::Text, start, n)?;
                }
                b'U' => {
                    let n = self.read(1)?[0];
                    self.text(Kind::Latin, start, n as u32)?;
                }
                b']' => self.add(Node::new(Kind::List, start, 0, 0, 0))?,
                b'}' => self.add(Node::new(Kind::Dict, start, 0, 0, 0))?,
                0x8f => self.add(Node::new(Kind::Set, start, 0, 0, 0))?,
                b't' => {
                    let from = self.mark()?;
                    self.tuple(start, from)?;
                }
                0x85..=0x87 => {
                    let n = (code - 0x84) as usize;
                    let Some(from) = self.stack.len().checked_sub(n) else {
                        return self.empty();
                    };
                    if from < self.floor() {
                        return self.empty();
                    }
                    self.tuple(start, from)?;
                }
                b'c' => self.global(start)?,
                b'R' => self.call(Kind::Call, start)?,
                0x81 => self.call(Kind::New, start)?,
                b'Q' => {
                    let pid = self.pop()?;
                    if self.nodes[pid as usize].kind != Kind::Tuple {
                        return corrupt(format!(
                            "saved_id must be a tuple, got {} at byte {start} of the pickle",
                            self.nodes[pid as usize].kind.name()
                        ));
                    }
                    self.add(Node::new(Kind::Stored, start, pid, 0, 0))?;
                }
                b'b' => {
                    let Some(from) = self.stack.len().checked_sub(1) else {
                        return self.empty();
                    };
                    self.change(Change::State, from, start)?;
                }
                b'a' => {
                    let Some(from) = self.stack.len().checked_sub(1) else {
                        return self.empty();
                    };
                    self.change(Change::Append, from, start)?;
                }
                b'e' => {
                    let from = self.mark()?;
                    self.change(Change::Append, from, start)?;
                }
                b's' => {
                    let Some(from) = self.stack.len().checked_sub(2) else {
                        return self.empty();
                    };
                    self.change(Change::Insert, from, start)?;
                }
                b'u' => {
                    let from = self.mark()?;
                    self.change(Change::Insert, from, start)?;
                }
                b'h' => {
                    let i = self.read(1)?[0];
                    self.recall(i as u32)?;
                }
                b'j' => {
                    let i = u32::from_le_bytes(self.array()?);
                    self.recall(i)?;
                }
                b'q' => {
                    let i = self.read(1)?[0];
                    self.remember(i as u32)?;
                }
                b'r' => {
                    let i = u32::from_le_bytes(self.array()?);
                    self.remember(i)?;
                }
                _ => {
                    return refused(format!(
                        "opcode 0x{code:02x} at byte {start} is not allowed in a checkpoint"
                    ))
                }
            }
        }
        let result = self.pop()?;
        Ok(Program {
            nodes: self.nodes,
            items: self.items,
            steps: self.steps,
            globals: self.globals,
            result,
            end: self.at,
        })
    }

    #[inline]
    fn read(&mut self, n: usize) -> Result<&'a [u8]> {
        match self.data.get(self.at..self.at + n) {
            Some(part) => {
                self.at += n;
                Ok(part)
            }
            None => Err(Error {
                fault: Fault::Truncated,
                text: format!(
                    "the pickle ends at byte {}, but {n} bytes are needed at {}",
                    self.data.len(),
                    self.at
                ),
            }),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.read(N)?);
        Ok(bytes)
    }

    fn line(&mut self) -> Result<&'a [u8]> {
        let rest = self.data.get(self.at..).unwrap_or_default();
        let rest = &rest[..rest.len().min(LONGEST_NAME)];
        match rest.iter().position(|&b| b == b'\n') {
            Some(n) => {
                self.at += n + 1;
                Ok(&rest[..n])
            }
            None => Err(Error {
                fault: Fault::Truncated,
                text: format!("a name at byte {} of the pickle does not end", self.at),
            }),
        }
    }

    fn empty<T>(&self) -> Result<T> {
        corrupt(format!(
            "the pickle pops an empty stack at byte {}",
            self.at - 1
        ))
    }

    /// The height below which nothing may be popped.
    #[inline]
    fn floor(&self) -> usize {
        self.marks.last().map_or(0, |&m| m as usize)
    }

    #[inline]
    fn push(&mut self, node: u32) -> Result<()> {
        // The stack's place and that in a container.
        self.allowance.take(8, self.at)?;
        self.stack.push(node);
        Ok(())
    }

    fn pop(&mut self) -> Result<u32> {
        if self.stack.len() <= self.floor() {
            return self.empty();
        }
        Ok(self.stack.pop().expect("the stack is not empty"))
    }

    /// Closes a mark; what lies on it begins at this height.
    fn mark(&mut self) -> Result<usize> {
        match self.marks.pop() {
            Some(m) => Ok(m as usize),
            None => corrupt(format!("the pickle has no mark at byte {}", self.at - 1)),
        }
    }

    #[inline]
    fn add(&mut self, node: Node) -> Result<()> {
        self.allowance.take(size_of::<Node>() as u64, self.at)?;
        let id = self.nodes.len() as u32;
        self.nodes.push(node);
        self.push(id)
    }

    fn long(&mut self, start: usize) -> Result<()> {
        let n = self.read(1)?[0] as usize;
        let at = self.at;
        let bytes = self.read(n)?;
        if n > 8 {
            return self.add(Node::new(Kind::Long, start, at as u32, 0, n as u32));
        }
        let negative = bytes.last().is_some_and(|&b| b >= 0x80);
        let mut wide = [if negative { 0xff } else { 0 }; 8];
        wide[..n].copy_from_slice(bytes);
        self.add(Node::wide(Kind::Int, start, u64::from_le_bytes(wide)))
    }

    fn text(&mut self, kind: Kind, start: usize, n: u32) -> Result<()> {
        let at = self.at;
        self.read(n as usize)?;
        self.add(Node::new(kind, start, at as u32, 0, n))
    }

    /// Makes a tuple of what lies above a height.
    fn tuple(&mut self, start: usize, from: usize) -> Result<()> {
        if from == self.stack.len() {
            return self.push(EMPTY);
        }
        let n = (self.stack.len() - from) as u32;
        let node = Node::new(Kind::Tuple, start, self.items.len() as u32, 0, n);
        self.items.extend(self.stack.drain(from..));
        self.add(node)
    }

    fn global(&mut self, start: usize) -> Result<()> {
        let name = (self.line()?, self.line()?);
        if let Some(&node) = self.names.get(&name) {
            return self.push(node);
        }
        let text = |part: &[u8]| match std::str::from_utf8(part) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => corrupt(format!("a name at byte {start} is not UTF-8")),
        };
        let known = (text(name.0)?, text(name.1)?);
        self.allowance.take(200, start)?;
        self.names.insert(name, self.nodes.len() as u32);
        let i = self.globals.len() as u32;
        self.globals.push(known);
        self.add(Node::new(Kind::Global, start, i, 0, 0))
    }

    fn call(&mut self, kind: Kind, start: usize) -> Result<()> {
        let (args, function) = (self.pop()?, self.pop()?);
        let [f, a] = [function, args].map(|i| self.nodes[i as usize].kind);
        if f != Kind::Global || a != Kind::Tuple {
            return refused(format!(
                "the pickle calls {} with {} at byte {start}, which is not allowed",
                f.name(),
                a.name()
            ));
        }
        self.add(Node::new(kind, start, function, args, 0))
    }

    /// Puts what lies above a height into what lies right below it.
    fn change(&mut self, change: Change, from: usize, start: usize) -> Result<()> {
        let n = self.stack.len() - from;
        if from <= self.floor() {
            return self.empty();
        }
        let target = self.stack[from - 1];
        let (what, kind) = match change {
            Change::Append => ("APPEND", Kind::List),
            Change::Insert => ("SETITEM", Kind::Dict),
            Change::State => ("state", Kind::Call),
        };
        let found = self.nodes[target as usize].kind;
        let made = matches!(found, Kind::Call | Kind::New);
        if change == Change::State && !made {
            return refused(format!(
                "can only build state for allowed classes, but got {} at byte {start}",
                found.name()
            ));
        }
        if found != kind && !made {
            return refused(format!(
                "the pickle applies {what} to {} at byte {start}, not to a {}",
                found.name(),
                kind.name()
            ));
        }
        if change == Change::Insert && !n.is_multiple_of(2) {
            return corrupt(format!(
                "a key without a value at byte {start} of the pickle"
            ));
        }
        if n == 0 {
            return Ok(());
        }
        self.allowance.take(size_of::<Step>() as u64, start)?;
        let step = Step {
            when: self.nodes.len() as u32,
            change,
            target,
            start: self.items.len() as u32,
            n: n as u32,
            at: start as u32,
        };
        self.items.extend(self.stack.drain(from..));
        self.steps.push(step);
        Ok(())
    }

    fn recall(&mut self, i: u32) -> Result<()> {
        match self.memo.get(i) {
            Some(node) => self.push(node),
            None => corrupt(format!(
                "the pickle recalls {i} at byte {}, which it did not remember",
                self.at
            )),
        }
    }

    fn remember(&mut self, i: u32) -> Result<()> {
        if self.stack.len() <= self.floor() {
            return corrupt(format!("the pickle remembers nothing at byte {}", self.at));
        }
        self.allowance.take(8, self.at)?;
        let top = self.stack[self.stack.len() - 1];
        self.memo.put(i, top);
        Ok(())
    }
}
