//! The pickles of checkpoints, read into plain nodes.
//!
//! Three passes, each linear in the file. [`parse`] knows the opcodes that checkpoints are made of
//! and runs nothing; its nodes are indices, so that a value recalled a thousand times is held once.
//! [`check::check`] knows what each function that a file may name takes and makes, and refuses what
//! does not fit before anything is made. The caller then makes each node once, in order.

pub mod check;
pub mod crowd;
mod parse;

pub use parse::parse;

/// What is wrong with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Corrupt,
    Truncated,
    /// It asks for what checkpoints may not do.
    Refused,
}

#[derive(Debug)]
pub struct Error {
    pub fault: Fault,
    pub text: String,
}

pub type Result<T> = std::result::Result<T, Error>;

fn corrupt<T>(text: String) -> Result<T> {
    let fault = Fault::Corrupt;
    Err(Error { fault, text })
}

fn refused<T>(text: String) -> Result<T> {
    let fault = Fault::Refused;
    Err(Error { fault, text })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    None,
    Bool,
    Int,
    /// An integer of any size: little-endian bytes at `a..a + n`.
    Long,
    Float,
    /// UTF-8 at `a..a + n`.
    Text,
    /// A string of Python 2 at `a..a + n`, in whatever encoding.
    Latin,
    /// Its items are `items[a..a + n]`.
    Tuple,
    List,
    Dict,
    Set,
    /// The name `globals[a]`.
    Global,
    /// The global of node `a` applied to the tuple `b`.
    Call,
    /// The same, made without its initializer.
    New,
    /// The storage that the tuple `a` stands for.
    Stored,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::None => "None",
            Kind::Bool => "bool",
            Kind::Int | Kind::Long => "int",
            Kind::Float => "float",
            Kind::Text | Kind::Latin => "str",
            Kind::Tuple => "tuple",
            Kind::List => "list",
            Kind::Dict => "dict",
            Kind::Set => "set",
            Kind::Global => "a global",
            Kind::Call | Kind::New => "the result of a call",
            Kind::Stored => "a storage",
        }
    }
}

/// A value; `a` and `b` also hold the 64 bits of an integer or a float.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    pub kind: Kind,
    /// The uses that it is good for: a set of [`check::Use`].
    fits: u32,
    /// Where in the pickle it was made.
    pub at: u32,
    pub a: u32,
    pub b: u32,
    /// Bytes of a text, items of a container.
    pub n: u32,
}

impl Node {
    fn new(kind: Kind, at: usize, a: u32, b: u32, n: u32) -> Node {
        Node {
            kind,
            fits: 0,
            at: at as u32,
            a,
            b,
            n,
        }
    }
    fn wide(kind: Kind, at: usize, bits: u64) -> Node {
        Node::new(kind, at, bits as u32, (bits >> 32) as u32, 0)
    }
    fn bits(&self) -> u64 {
        self.a as u64 | (self.b as u64) << 32
    }
    pub fn int(&self) -> i64 {
        self.bits() as i64
    }
    pub fn float(&self) -> f64 {
        f64::from_bits(self.bits())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// `items[start..start + n]` go to the end of a list.
    Append,
    /// The same, keys and values in turn, into a dict.
    Insert,
    /// `items[start]` is the state of an object.
    State,
}

/// What happens to `target` as soon as the first `when` nodes are made.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub when: u32,
    pub change: Change,
    pub target: u32,
    pub start: u32,
    pub n: u32,
    pub at: u32,
}

/// What a pickle says.
#[derive(Debug)]
pub struct Program {
    pub nodes: Vec<Node>,
    pub items: Vec<u32>,
    pub steps: Vec<Step>,
    /// Module and name of every global, each once.
    pub globals: Vec<(String, String)>,
    pub result: u32,
    /// Where the pickle ends.
    pub end: usize,
}

/// What reading a file may take, so that none takes much more than its size.
pub struct Allowance {
    left: u64,
    total: u64,
}

impl Allowance {
    /// What any file may take, in bytes, before its size counts.
    pub const FREE: u64 = 1 << 26;

    /// `ratio` bytes for each byte of a file.
    pub fn new(size: u64, ratio: u64) -> Allowance {
        let total = Allowance::FREE + ratio * size;
        Allowance { left: total, total }
    }
    #[inline]
    fn take(&mut self, n: u64, at: usize) -> Result<()> {
        match self.left.checked_sub(n) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => corrupt(format!(
                "the pickle asks at byte {at} for more than the {} bytes of memory that a file of \
                 its size may take",
                self.total
            )),
        }
    }
}

#[cfg(test)]
mod tests;
