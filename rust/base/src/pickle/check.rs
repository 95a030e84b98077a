//! Checks the calls of a pickle against signatures before anything is made.

use super::{corrupt, refused, Allowance, Change, Kind, Node, Program, Result, Step};

/// What a value is good for. A word of a signature is one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Use {
    None = 1,
    Bool = 1 << 1,
    /// Of 64 bits.
    Int = 1 << 2,
    Number = 1 << 3,
    Text = 1 << 4,
    Bytes = 1 << 5,
    Tuple = 1 << 6,
    /// Integers of 64 bits only.
    Ints = 1 << 7,
    /// May be part of a key, be a key, and hold keys only.
    Part = 1 << 8,
    Key = 1 << 9,
    Keys = 1 << 10,
    /// A key with a value, and a list of these.
    Pair = 1 << 11,
    Pairs = 1 << 12,
    Dict = 1 << 13,
    Storage = 1 << 14,
    Tensor = 1 << 15,
    /// A class or a constant, and a function that makes tensors.
    Value = 1 << 16,
    Maker = 1 << 17,
    Any = 1 << 18,
    /// Made by a function of the user's, which vouches for it.
    Open = 1 << 19,
}

const WORDS: [(&str, Use); 18] = [
    ("none", Use::None),
    ("bool", Use::Bool),
    ("int", Use::Int),
    ("number", Use::Number),
    ("text", Use::Text),
    ("bytes", Use::Bytes),
    ("tuple", Use::Tuple),
    ("ints", Use::Ints),
    ("part", Use::Part),
    ("key", Use::Key),
    ("keys", Use::Keys),
    ("pairs", Use::Pairs),
    ("dict", Use::Dict),
    ("storage", Use::Storage),
    ("tensor", Use::Tensor),
    ("value", Use::Value),
    ("maker", Use::Maker),
    ("any", Use::Any),
];

/// A key that is a tuple is hashed and compared anew each time.
const LONGEST_KEY: u32 = 16;
/// Bytes of memory for one byte of a file: a small dict takes about this much.
const RATIO: u64 = 24;

/// What a function takes and makes. One whose first argument is a `maker` calls that with its
/// third, a tuple.
#[derive(Debug)]
pub struct Signature {
    /// The uses that each argument may be good for.
    args: Vec<u32>,
    required: usize,
    makes: u32,
}

impl Signature {
    /// Reads `"storage int bytes|text? -> tensor"`; `None` where a word is not known.
    pub fn new(text: &str) -> Option<Signature> {
        let uses = |words: &str| {
            let mut bits = 0;
            for word in words.split('|') {
                bits |= WORDS.iter().find(|(name, _)| *name == word)?.1 as u32;
            }
            Some(bits)
        };
        let (takes, makes) = text.split_once("->")?;
        let takes: Vec<&str> = takes.split_whitespace().collect();
        let required = takes.iter().take_while(|w| !w.ends_with('?')).count();
        let args = takes.iter().map(|w| uses(w.trim_end_matches('?')));
        let args: Vec<u32> = args.collect::<Option<_>>()?;
        let hands = args.first() == Some(&(Use::Maker as u32));
        if hands && (required < 3 || args[2] != Use::Tuple as u32) {
            return None;
        }
        Some(Signature {
            args,
            required,
            makes: makes
                .split_whitespace()
                .map(uses)
                .try_fold(0, |all, bits| Some(all | bits?))?,
        })
    }

    /// Whether argument `i` is put into a table, as keys or as pairs.
    pub fn gathers(&self, i: usize) -> Option<Use> {
        let mask = self.args.get(i).copied().unwrap_or(0);
        let of = |u: Use| mask & u as u32 != 0;
        [Use::Keys, Use::Pairs].into_iter().find(|&u| of(u))
    }
}

fn words(bits: u32) -> String {
    let named = WORDS.iter().filter(|(_, u)| bits & *u as u32 != 0);
    named
        .map(|(name, _)| *name)
        .collect::<Vec<_>>()
        .join(" or ")
}

/// What a global may be used for.
#[derive(Debug)]
pub enum Role {
    /// A class or a constant, which may not be called.
    Value,
    Function(Signature),
    /// The user's own: takes anything.
    Open,
}

struct Checker<'a> {
    p: &'a mut Program,
    roles: &'a [Role],
    allowance: Allowance,
    data: &'a [u8],
}

/// Checks a program whose globals have these roles, from a file of `size` bytes.
pub fn check(program: &mut Program, roles: &[Role], data: &[u8], size: u64) -> Result<()> {
    let count = program.nodes.len();
    let steps = std::mem::take(&mut program.steps);
    let mut checker = Checker {
        p: program,
        roles,
        allowance: Allowance::new(size, RATIO),
        data,
    };
    let mut due = steps.iter().peekable();
    let mut all = || -> Result<()> {
        for id in 0..count {
            while let Some(step) = due.next_if(|s| s.when as usize <= id) {
                checker.step(step)?;
            }
            checker.node(id)?;
        }
        due.try_for_each(|step| checker.step(step))
    };
    let result = all();
    program.steps = steps;
    result
}

impl Checker<'_> {
    fn items(&self, tuple: &Node) -> std::ops::Range<usize> {
        tuple.a as usize..(tuple.a + tuple.n) as usize
    }

    fn item(&self, i: usize) -> &Node {
        &self.p.nodes[self.p.items[i] as usize]
    }

    /// Decides what one node is good for, and takes the memory that it will need.
    fn node(&mut self, id: usize) -> Result<()> {
        use Use::*;
        let node = self.p.nodes[id];
        let scalar = Part as u32 | Key as u32;
        let (fits, memory) = match node.kind {
            Kind::None => (None as u32 | scalar, 0),
            Kind::Bool => (Bool as u32 | scalar, 0),
            Kind::Int => (Int as u32 | Number as u32 | scalar, 32),
            Kind::Long => (Number as u32 | scalar, 32 + node.n as u64),
            Kind::Float => (Number as u32 | scalar, 24),
            // A character may take four bytes, whatever it took in the file.
            Kind::Text => (Text as u32 | scalar, 64 + 4 * node.n as u64),
            Kind::Latin => (Text as u32 | scalar, 64 + node.n as u64),
            Kind::Tuple => (self.tuple(&node), 56 + 8 * node.n as u64),
            Kind::List => (Ints as u32 | Keys as u32 | Pairs as u32, 72),
            Kind::Dict => (Dict as u32, 80),
            Kind::Set => (0, 232),
            Kind::Global => match &self.roles[node.a as usize] {
                Role::Value => (Value as u32 | scalar, 0),
                Role::Function(s) if s.makes & Tensor as u32 != 0 => (Maker as u32, 0),
                Role::Function(_) => (0, 0),
                Role::Open => (Value as u32 | Maker as u32 | scalar, 0),
            },
            Kind::Call | Kind::New => self.call(id)?,
            Kind::Stored => (Storage as u32 | scalar, self.stored(&node)?),
        };
        self.p.nodes[id].fits = fits | Any as u32;
        self.allowance.take(memory, node.at as usize)
    }

    fn tuple(&self, node: &Node) -> u32 {
        use Use::*;
        let mut all = u32::MAX;
        for i in self.items(node) {
            all &= self.item(i).fits;
        }
        let mut fits = Tuple as u32;
        if all & Int as u32 != 0 {
            fits |= Ints as u32;
        }
        if all & Part as u32 != 0 && node.n <= LONGEST_KEY {
            fits |= Key as u32;
        }
        if all & Key as u32 != 0 {
            fits |= Keys as u32;
        }
        if node.n == 2 && self.item(node.a as usize).fits & Key as u32 != 0 {
            fits |= Pair as u32;
        }
        fits
    }

    /// What a call that copies an argument may have to copy.
    fn copied(&self, node: &Node) -> u64 {
        node.n as u64
            * match node.kind {
                Kind::Text | Kind::Latin => 4,
                Kind::Tuple => 8,
                _ if node.fits & Use::Bytes as u32 != 0 => 1,
                _ => 128,
            }
    }

    fn call(&mut self, id: usize) -> Result<(u32, u64)> {
        use Use::{Dict, Key, Maker, Open, Part, Tensor};
        let node = self.p.nodes[id];
        let function = self.p.nodes[node.a as usize];
        let args = self.p.nodes[node.b as usize];
        let mut memory = 400;
        for i in self.items(&args) {
            memory += self.copied(self.item(i));
        }
        let Role::Function(signature) = &self.roles[function.a as usize] else {
            if matches!(self.roles[function.a as usize], Role::Value) {
                return refused(format!(
                    "the pickle calls {} at byte {}, which is not allowed",
                    self.name(&function),
                    node.at
                ));
            }
            // A key only if it is made of keys, so that hashing it takes no longer than they do.
            let key = self.tuple(&args) & Key as u32;
            let fits = Open as u32 | Tensor as u32 | Dict as u32 | key;
            return Ok((fits, memory));
        };
        self.takes(signature, &function, &args, node.at)?;
        if signature.args.first() == Some(&(Maker as u32)) {
            memory += self.handed(&args, node.at)?;
        }
        let mut makes = signature.makes;
        for i in self.items(&args) {
            let item = *self.item(i);
            if item.kind == Kind::Tuple && item.n > LONGEST_KEY {
                makes &= !(Key as u32 | Part as u32);
            }
            let n = &mut self.p.nodes[id].n;
            *n = item.n.max(*n);
        }
        Ok((makes, memory))
    }

    /// The memory of a call whose first argument is called with the third.
    fn handed(&self, args: &Node, at: u32) -> Result<u64> {
        let [maker, inner] = [0, 2].map(|i| *self.item(args.a as usize + i));
        if let Role::Function(signature) = &self.roles[maker.a as usize] {
            if signature.args.first() == Some(&(Use::Maker as u32)) {
                let name = self.name(&maker);
                return refused(format!("{name} is handed to another such at byte {at}"));
            }
            self.takes(signature, &maker, &inner, at)?;
        }
        Ok(self.items(&inner).map(|i| self.copied(self.item(i))).sum())
    }

    fn name(&self, global: &Node) -> String {
        let (module, name) = &self.p.globals[global.a as usize];
        format!("{module}.{name}")
    }

    fn takes(&self, signature: &Signature, function: &Node, args: &Node, at: u32) -> Result<()> {
        let (n, most) = (args.n as usize, signature.args.len());
        if n < signature.required || n > most {
            return corrupt(format!(
                "{} gets {n} arguments at byte {at} of the pickle, must get {} to {most}",
                self.name(function),
                signature.required
            ));
        }
        for (i, (at_item, &mask)) in self.items(args).zip(&signature.args).enumerate() {
            let item = self.item(at_item);
            if item.fits & mask == 0 {
                return corrupt(format!(
                    "argument {i} of {} must be {}, got {} at byte {at} of the pickle",
                    self.name(function),
                    words(mask),
                    item.kind.name()
                ));
            }
        }
        Ok(())
    }

    fn stored(&mut self, node: &Node) -> Result<u64> {
        use Use::*;
        let pid = self.p.nodes[node.a as usize];
        let masks = [
            Text as u32,
            Value as u32,
            Text as u32 | Int as u32,
            Text as u32,
            Int as u32,
            None as u32 | Tuple as u32,
        ];
        let range = self.items(&pid);
        let good = matches!(pid.n, 5 | 6)
            && range
                .clone()
                .zip(masks)
                .all(|(i, mask)| self.item(i).fits & mask != 0);
        if !good {
            return corrupt(format!(
                "saved_id at byte {} must be a tuple of 5: 'storage', class, key, location, size",
                node.at
            ));
        }
        let word = self.item(range.start);
        let text = &self.data[word.a as usize..(word.a + word.n) as usize];
        if text != b"storage" {
            let start = String::from_utf8_lossy(&text[..text.len().min(40)]);
            return corrupt(format!("unknown type of saved data: {start:?}"));
        }
        if pid.n == 6 {
            let view = *self.item(range.start + 5);
            let masks = [Text as u32 | Int as u32, Int as u32, Int as u32];
            let good = view.kind == Kind::None
                || view.n == 3
                    && self
                        .items(&view)
                        .zip(masks)
                        .all(|(i, m)| self.item(i).fits & m != 0);
            if !good {
                return corrupt(format!(
                    "impossible view of a storage at byte {}: must be key, offset and size",
                    node.at
                ));
            }
        }
        let (key, place) = (self.item(range.start + 2), self.item(range.start + 3));
        Ok(300 + self.copied(key) + self.copied(place))
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        use Use::*;
        let range = step.start as usize..(step.start + step.n) as usize;
        let target = self.p.nodes[step.target as usize];
        let open = target.fits & Open as u32 != 0;
        let at = step.at;
        let mut fits = target.fits;
        match step.change {
            Change::Append => {
                if target.kind != Kind::List && !open {
                    return refused(format!("the pickle applies APPEND to no list at byte {at}"));
                }
                for i in range {
                    let item = self.item(i).fits;
                    if item & Int as u32 == 0 {
                        fits &= !(Ints as u32);
                    }
                    if item & Key as u32 == 0 {
                        fits &= !(Keys as u32);
                    }
                    if item & Pair as u32 == 0 {
                        fits &= !(Pairs as u32);
                    }
                }
                self.allowance.take(16 * step.n as u64, at as usize)?;
            }
            Change::Insert => {
                if target.fits & Dict as u32 == 0 {
                    return refused(format!(
                        "the pickle applies SETITEM to no dict at byte {at}"
                    ));
                }
                for i in range.step_by(2) {
                    let key = *self.item(i);
                    if key.fits & Key as u32 == 0 {
                        return corrupt(format!(
                            "a key at byte {at} of the pickle is {}, must be a scalar, a text or \
                             a flat tuple of at most {LONGEST_KEY} of these",
                            key.kind.name()
                        ));
                    }
                    // Equal texts are compared byte by byte.
                    let mut bytes = 100 + self.copied(&key);
                    if key.kind == Kind::Tuple {
                        bytes += self
                            .items(&key)
                            .map(|i| self.copied(self.item(i)))
                            .sum::<u64>();
                    }
                    self.allowance.take(bytes, at as usize)?;
                }
            }
            Change::State => {
                let state = *self.item(range.start);
                let plain = state.fits & Dict as u32 != 0;
                if !(open || target.fits & Dict as u32 != 0 && plain) {
                    return refused(format!(
                        "can only build state for allowed classes, but got {} at byte {at}",
                        self.name(&self.p.nodes[target.a as usize])
                    ));
                }
                fits &= !(Key as u32);
                let memory = 100 + self.copied(&state);
                self.allowance.take(memory, at as usize)?;
            }
        }
        let n = match step.change {
            Change::Append => step.n,
            Change::Insert => step.n / 2,
            Change::State => 0,
        };
        let target = &mut self.p.nodes[step.target as usize];
        target.fits = fits;
        target.n = target.n.saturating_add(n);
        Ok(())
    }
}
