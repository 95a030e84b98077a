//! 64-bit integers as two words each, for adapters that have none: a kernel's text becomes a module in which
//! a number is a `vec2<u32>`, and arithmetic with it calls the functions of `shaders/words.wgsl`. A vector of such
//! numbers is an array.

mod body;

use super::text::is_directive;
use crate::bail;
use crate::error::{Error, Result};
use body::Body;
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{
    ArraySize, Expression as E, Function, Handle, Literal, Module, Scalar, ScalarKind, Span, Type,
    TypeInner, VectorSize,
};
use std::collections::HashMap;
use std::num::NonZeroU32;

const FUNCTIONS: &str = include_str!("../../../../shaders/words.wgsl");
const SPAN: Span = Span::UNDEFINED;

/// Whether a text names 64-bit integers.
pub fn has_long(text: &str) -> bool {
    super::text::words(text).any(|w| matches!(w, "i64" | "u64"))
}

/// The module of a text, without 64-bit integers.
pub fn module(name: &str, text: &str) -> Result<Module> {
    let (mut head, mut body) = (String::new(), String::new());
    for line in text.lines() {
        let to = if is_directive(line) {
            &mut head
        } else {
            &mut body
        };
        to.push_str(line);
        to.push('\n');
    }
    let text = [&head, FUNCTIONS, &body].concat();
    let wrong =
        |why: String| Error::runtime(format!("wgpu: {name}: the shader did not compile: {why}"));
    let module = naga::front::wgsl::parse_str(&text).map_err(|e| wrong(e.emit_to_string(&text)))?;
    let info = Validator::new(ValidationFlags::all(), Capabilities::all())
        .validate(&module)
        .map_err(|e| wrong(e.emit_to_string(&text)))?;
    Lowering::new(&module, &info).run()
}

fn is_long(s: Scalar) -> bool {
    s.width == 8 && matches!(s.kind, ScalarKind::Sint | ScalarKind::Uint)
}

/// How many numbers of 64 bits a value is made of, and whether they are signed.
#[derive(Clone, Copy)]
struct Long {
    size: Option<VectorSize>,
    signed: bool,
}

fn long(inner: &TypeInner) -> Option<Long> {
    let (scalar, size) = match *inner {
        TypeInner::Scalar(s) => (s, None),
        TypeInner::Vector { size, scalar } => (scalar, Some(size)),
        _ => return None,
    };
    is_long(scalar).then_some(Long {
        size,
        signed: scalar.kind == ScalarKind::Sint,
    })
}

fn vector_size(inner: &TypeInner) -> Option<VectorSize> {
    match *inner {
        TypeInner::Vector { size, .. } => Some(size),
        _ => None,
    }
}

struct Lowering<'a> {
    old: &'a Module,
    info: &'a ModuleInfo,
    new: Module,
    /// What the old types, and expressions of the module, became.
    types: Vec<Handle<Type>>,
    globals: Vec<Handle<E>>,
    words: Handle<Type>,
    functions: HashMap<&'a str, Handle<Function>>,
    /// The constants that numbers of 64 bits became.
    numbers: HashMap<u64, Handle<naga::Constant>>,
}

impl<'a> Lowering<'a> {
    fn new(old: &'a Module, info: &'a ModuleInfo) -> Self {
        let mut new = Module::default();
        let words = Type {
            name: None,
            inner: TypeInner::Vector {
                size: VectorSize::Bi,
                scalar: Scalar::U32,
            },
        };
        let words = new.types.insert(words, SPAN);
        let named = |(h, f): (Handle<Function>, &'a Function)| Some((f.name.as_deref()?, h));
        Lowering {
            old,
            info,
            new,
            types: Vec::new(),
            globals: Vec::new(),
            words,
            functions: old.functions.iter().filter_map(named).collect(),
            numbers: HashMap::new(),
        }
    }

    fn run(mut self) -> Result<Module> {
        let (old, info) = (self.old, self.info);
        for (_, ty) in old.types.iter() {
            let inner = self.inner(&ty.inner);
            let new = match inner {
                TypeInner::Vector { .. } if long(&ty.inner).is_some() => self.words,
                inner => {
                    let name = match long(&ty.inner) {
                        Some(_) => None,
                        None => ty.name.clone(),
                    };
                    self.new.types.insert(Type { name, inner }, SPAN)
                }
            };
            self.types.push(new);
        }
        for (_, e) in old.global_expressions.iter() {
            let new = self.global(e)?;
            self.globals.push(new);
        }
        for (_, c) in old.constants.iter() {
            let mut c = c.clone();
            (c.ty, c.init) = (self.ty(c.ty), self.globals[c.init.index()]);
            self.new.constants.append(c, SPAN);
        }
        for (_, o) in old.overrides.iter() {
            let mut o = o.clone();
            (o.ty, o.init) = (self.ty(o.ty), o.init.map(|e| self.globals[e.index()]));
            self.new.overrides.append(o, SPAN);
        }
        for (_, v) in old.global_variables.iter() {
            let mut v = v.clone();
            (v.ty, v.init) = (self.ty(v.ty), v.init.map(|e| self.globals[e.index()]));
            self.new.global_variables.append(v, SPAN);
        }
        for (key, &ty) in &old.special_types.predeclared_types {
            let ty = self.ty(ty);
            self.new
                .special_types
                .predeclared_types
                .insert(key.clone(), ty);
        }
        self.new.diagnostic_filters = old.diagnostic_filters.clone();
        self.new.diagnostic_filter_leaf = old.diagnostic_filter_leaf;
        for (h, f) in old.functions.iter() {
            let f = Body::lowered(&mut self, f, &info[h])?;
            self.new.functions.append(f, SPAN);
        }
        for (i, e) in old.entry_points.iter().enumerate() {
            let mut e = e.clone();
            e.function = Body::lowered(&mut self, &e.function, info.get_entry_point(i))?;
            let sizes = e.workgroup_size_overrides.iter_mut().flatten().flatten();
            sizes.for_each(|h| *h = self.globals[h.index()]);
            self.new.entry_points.push(e);
        }
        Ok(self.new)
    }

    fn ty(&self, old: Handle<Type>) -> Handle<Type> {
        self.types[old.index()]
    }

    fn inner(&self, old: &TypeInner) -> TypeInner {
        match (long(old), old) {
            (Some(Long { size: Some(n), .. }), _) => TypeInner::Array {
                base: self.words,
                size: ArraySize::Constant(
                    NonZeroU32::new(n as u32).expect("a vector has elements"),
                ),
                stride: 8,
            },
            (Some(_), _) => self.new.types[self.words].inner.clone(),
            (None, TypeInner::Pointer { base, space }) => TypeInner::Pointer {
                base: self.ty(*base),
                space: *space,
            },
            (None, TypeInner::Array { base, size, stride }) => TypeInner::Array {
                base: self.ty(*base),
                size: *size,
                stride: *stride,
            },
            (None, TypeInner::Struct { members, span }) => {
                let mut members = members.clone();
                members.iter_mut().for_each(|m| m.ty = self.ty(m.ty));
                TypeInner::Struct {
                    members,
                    span: *span,
                }
            }
            (None, other) => other.clone(),
        }
    }

    /// A type that expressions have.
    fn made(&mut self, inner: TypeInner) -> Handle<Type> {
        self.new.types.insert(Type { name: None, inner }, SPAN)
    }

    fn global(&mut self, old: &E) -> Result<Handle<E>> {
        let at = |h: &Handle<E>| self.globals[h.index()];
        let new = match old {
            E::Literal(l) => match number(*l) {
                Some(v) => return Ok(self.number_of(v)),
                None => E::Literal(*l),
            },
            E::Constant(_) | E::Override(_) => old.clone(),
            E::ZeroValue(ty) => E::ZeroValue(self.ty(*ty)),
            E::Compose { ty, components } => E::Compose {
                ty: self.ty(*ty),
                components: components.iter().map(at).collect(),
            },
            E::Splat { size, value } => E::Splat {
                size: *size,
                value: at(value),
            },
            E::Unary { op, expr } => E::Unary {
                op: *op,
                expr: at(expr),
            },
            E::Binary { op, left, right } => E::Binary {
                op: *op,
                left: at(left),
                right: at(right),
            },
            other => bail!(NoKernel, "wgpu: a constant of a kernel is {other:?}"),
        };
        Ok(self.new.global_expressions.append(new, SPAN))
    }

    /// A number of 64 bits among the module's expressions.
    fn number_of(&mut self, v: u64) -> Handle<E> {
        let all = &mut self.new.global_expressions;
        let word = |w: u64| E::Literal(Literal::U32(w as u32));
        let components = vec![all.append(word(v), SPAN), all.append(word(v >> 32), SPAN)];
        let ty = self.words;
        all.append(E::Compose { ty, components }, SPAN)
    }

    fn constant(&mut self, v: u64) -> Handle<naga::Constant> {
        if let Some(&c) = self.numbers.get(&v) {
            return c;
        }
        let init = self.number_of(v);
        let constant = naga::Constant {
            name: None,
            ty: self.words,
            init,
        };
        let c = self.new.constants.append(constant, SPAN);
        self.numbers.insert(v, c);
        c
    }
}

fn number(l: Literal) -> Option<u64> {
    match l {
        Literal::I64(v) => Some(v as u64),
        Literal::U64(v) => Some(v),
        _ => None,
    }
}
