//! The body of a function, without 64-bit integers.

use super::{is_long, long, number, vector_size, Long, Lowering, SPAN};
use crate::bail;
use crate::error::Result;
use naga::proc::TypeResolution;
use naga::valid::FunctionInfo;
use naga::{
    AtomicFunction, BinaryOperator as B, Block, Expression as E, Function, GatherMode, Handle,
    MathFunction, Scalar, ScalarKind, Statement as S, TypeInner, UnaryOperator as U, VectorSize,
};

/// A function in the making.
pub(super) struct Body<'a, 'b> {
    all: &'b mut Lowering<'a>,
    old: &'b Function,
    info: &'b FunctionInfo,
    new: Function,
    /// What the old expressions became.
    map: Vec<Option<Handle<E>>>,
    block: Block,
    /// From where on expressions are not evaluated yet.
    from: usize,
}

type At = Handle<E>;

impl<'a, 'b> Body<'a, 'b> {
    pub(super) fn lowered(
        all: &'b mut Lowering<'a>,
        old: &'b Function,
        info: &'b FunctionInfo,
    ) -> Result<Function> {
        let mut new = Function {
            name: old.name.clone(),
            arguments: old.arguments.clone(),
            result: old.result.clone(),
            diagnostic_filter_leaf: old.diagnostic_filter_leaf,
            ..Function::default()
        };
        new.arguments.iter_mut().for_each(|a| a.ty = all.ty(a.ty));
        new.result.iter_mut().for_each(|r| r.ty = all.ty(r.ty));
        for (_, v) in old.local_variables.iter() {
            let mut v = v.clone();
            (v.ty, v.init) = (all.ty(v.ty), None);
            new.local_variables.append(v, SPAN);
        }
        let map = vec![None; old.expressions.len()];
        let mut body = Body {
            all,
            old,
            info,
            new,
            map,
            block: Block::new(),
            from: 0,
        };
        for (h, e) in old.expressions.iter().filter(|(_, e)| e.needs_pre_emit()) {
            let e = match e {
                E::Literal(l) => match number(*l) {
                    Some(v) => E::Constant(body.all.constant(v)),
                    None => e.clone(),
                },
                E::ZeroValue(ty) => E::ZeroValue(body.all.ty(*ty)),
                other => other.clone(),
            };
            body.map[h.index()] = Some(body.new.expressions.append(e, SPAN));
        }
        body.from = body.new.expressions.len();
        body.block = body.statements(&old.body)?;
        for (h, v) in old.local_variables.iter() {
            let init = v.init.map(|e| body.at(e)).transpose()?;
            body.new.local_variables.get_mut(h).init = init;
        }
        body.new.body = body.block;
        Ok(body.new)
    }

    fn at(&self, old: At) -> Result<At> {
        match self.map[old.index()] {
            Some(new) => Ok(new),
            None => bail!(
                Assertion,
                "wgpu: a kernel uses a value before it is computed"
            ),
        }
    }

    fn long(&self, old: At) -> Option<Long> {
        let ty: &TypeResolution = &self.info[old].ty;
        long(ty.inner_with(&self.all.old.types))
    }

    fn add(&mut self, e: E) -> At {
        self.new.expressions.append(e, SPAN)
    }

    /// Has all expressions evaluated that are not yet.
    fn flush(&mut self) {
        if self.new.expressions.len() > self.from {
            let range = self.new.expressions.range_from(self.from);
            self.block.push(S::Emit(range), SPAN);
        }
        self.from = self.new.expressions.len();
    }

    /// Adds what a statement gives, which is not evaluated.
    fn result(&mut self, e: E) -> At {
        self.flush();
        let at = self.add(e);
        self.from = self.new.expressions.len();
        at
    }

    /// What one of the functions for words gives.
    fn call(&mut self, name: &str, arguments: Vec<At>) -> Result<At> {
        let Some(&function) = self.all.functions.get(name) else {
            bail!(Assertion, "wgpu: there is no function {name}");
        };
        let result = self.result(E::CallResult(function));
        let call = S::Call {
            function,
            arguments,
            result: Some(result),
        };
        self.block.push(call, SPAN);
        Ok(result)
    }

    fn element(&mut self, base: At, index: u32) -> At {
        self.add(E::AccessIndex { base, index })
    }

    /// A vector, each element of which `f` makes: an array where they are numbers of 64 bits.
    fn each(
        &mut self,
        size: VectorSize,
        of: Option<Scalar>,
        mut f: impl FnMut(&mut Self, u32) -> Result<At>,
    ) -> Result<At> {
        let components = (0..size as u32)
            .map(|i| f(self, i))
            .collect::<Result<_>>()?;
        let inner = match of {
            Some(scalar) => TypeInner::Vector { size, scalar },
            None => self.all.inner(&TypeInner::Vector {
                size,
                scalar: Scalar::I64,
            }),
        };
        let ty = self.all.made(inner);
        Ok(self.add(E::Compose { ty, components }))
    }

    fn expression(&mut self, h: At) -> Result<()> {
        let new = match self.long_expression(h)? {
            Some(new) => new,
            None => {
                let e = self.plain(&self.old.expressions[h])?;
                self.add(e)
            }
        };
        self.map[h.index()] = Some(new);
        Ok(())
    }

    /// An expression of or with numbers of 64 bits; `None` where it is said as before.
    fn long_expression(&mut self, h: At) -> Result<Option<At>> {
        let own = self.long(h);
        Ok(Some(match (&self.old.expressions[h], own) {
            (E::Compose { components, .. }, Some(Long { size: Some(n), .. })) => {
                let mut parts = Vec::new();
                for &c in components {
                    let from = self.at(c)?;
                    match self.long(c).and_then(|l| l.size) {
                        Some(n) => parts.extend((0..n as u32).map(|i| self.element(from, i))),
                        None => parts.push(from),
                    }
                }
                self.each(n, None, |_, i| Ok(parts[i as usize]))?
            }
            (&E::Splat { size, value }, Some(_)) => {
                let value = self.at(value)?;
                self.each(size, None, |_, _| Ok(value))?
            }
            (
                E::Swizzle {
                    size,
                    vector,
                    pattern,
                },
                Some(_),
            ) => {
                let vector = self.at(*vector)?;
                let of =
                    |body: &mut Self, i: u32| Ok(body.element(vector, pattern[i as usize] as u32));
                self.each(*size, None, of)?
            }
            (&E::Unary { op, expr }, Some(l)) => {
                let x = self.at(expr)?;
                match l.size {
                    None => self.unary(op, x)?,
                    Some(n) => self.each(n, None, |body, i| {
                        let x = body.element(x, i);
                        body.unary(op, x)
                    })?,
                }
            }
            (&E::Binary { op, left, right }, _) => {
                let (l, r) = (self.long(left), self.long(right));
                let Some(one) = l.or(r) else { return Ok(None) };
                let size = |h: At| vector_size(self.info[h].ty.inner_with(&self.all.old.types));
                let (left_size, right_size) = (size(left), size(right));
                let (x, y) = (self.at(left)?, self.at(right)?);
                match left_size.or(right_size) {
                    None => self.binary(op, x, y, one.signed)?,
                    Some(n) => {
                        let of = own.is_none().then_some(Scalar::BOOL);
                        self.each(n, of, |body, i| {
                            let part = |body: &mut Self, v: At, size: Option<_>| match size {
                                Some(_) => body.element(v, i),
                                None => v,
                            };
                            let (x, y) = (part(body, x, left_size), part(body, y, right_size));
                            body.binary(op, x, y, one.signed)
                        })?
                    }
                }
            }
            (
                &E::Select {
                    condition,
                    accept,
                    reject,
                },
                Some(Long { size: Some(n), .. }),
            ) => {
                let inner = self.info[condition].ty.inner_with(&self.all.old.types);
                let several = vector_size(inner).is_some();
                let [c, a, r] = [self.at(condition)?, self.at(accept)?, self.at(reject)?];
                self.each(n, None, |body, i| {
                    let condition = if several { body.element(c, i) } else { c };
                    let (accept, reject) = (body.element(a, i), body.element(r, i));
                    Ok(body.add(E::Select {
                        condition,
                        accept,
                        reject,
                    }))
                })?
            }
            (
                &E::As {
                    expr,
                    kind,
                    convert,
                },
                _,
            ) => {
                let to = own;
                let from = self.long(expr);
                if from.is_none() && to.is_none() {
                    return Ok(None);
                }
                let inner = self.info[expr].ty.inner_with(&self.all.old.types);
                let (Some(scalar), size) = (inner.scalar(), vector_size(inner)) else {
                    bail!(Assertion, "wgpu: a kernel converts what is no number");
                };
                let x = self.at(expr)?;
                let width = convert.unwrap_or(scalar.width);
                let to = Scalar { kind, width };
                match size {
                    None => self.convert(x, scalar, to)?,
                    Some(n) => self.each(n, (!is_long(to)).then_some(to), |body, i| {
                        let x = body.element(x, i);
                        body.convert(x, scalar, to)
                    })?,
                }
            }
            (&E::Math { fun, arg, arg1, .. }, Some(Long { size, signed })) => {
                let x = self.at(arg)?;
                let y = arg1.map(|y| self.at(y)).transpose()?;
                match size {
                    None => self.math(fun, x, y, signed)?,
                    Some(n) => self.each(n, None, |body, i| {
                        let x = body.element(x, i);
                        let y = y.map(|y| body.element(y, i));
                        body.math(fun, x, y, signed)
                    })?,
                }
            }
            _ => return Ok(None),
        }))
    }

    fn unary(&mut self, op: U, expr: At) -> Result<At> {
        match op {
            U::Negate => self.call("words_negate", vec![expr]),
            op => Ok(self.add(E::Unary { op, expr })),
        }
    }

    fn binary(&mut self, op: B, x: At, y: At, signed: bool) -> Result<At> {
        let by_sign = |name: &str| match signed {
            true => format!("words_{name}_signed"),
            false => format!("words_{name}_unsigned"),
        };
        let (name, arguments) = match op {
            B::Add => ("words_add".into(), [x, y]),
            B::Subtract => ("words_subtract".into(), [x, y]),
            B::Multiply => ("words_multiply".into(), [x, y]),
            B::Divide => (by_sign("divide"), [x, y]),
            B::Modulo => (by_sign("rest"), [x, y]),
            B::Equal | B::NotEqual => ("words_equal".into(), [x, y]),
            B::Less | B::GreaterEqual => (by_sign("less"), [x, y]),
            B::Greater | B::LessEqual => (by_sign("less"), [y, x]),
            B::ShiftLeft => ("words_left".into(), [x, y]),
            B::ShiftRight => (by_sign("right"), [x, y]),
            _ => {
                return Ok(self.add(E::Binary {
                    op,
                    left: x,
                    right: y,
                }))
            }
        };
        let expr = self.call(&name, arguments.into())?;
        Ok(match op {
            B::NotEqual | B::GreaterEqual | B::LessEqual => self.add(E::Unary {
                op: U::LogicalNot,
                expr,
            }),
            _ => expr,
        })
    }

    fn math(&mut self, fun: MathFunction, x: At, y: Option<At>, signed: bool) -> Result<At> {
        match (fun, y) {
            (MathFunction::Abs, None) if signed => self.call("words_size", vec![x]),
            (MathFunction::Abs, None) => Ok(x),
            (MathFunction::Min | MathFunction::Max, Some(y)) => {
                let condition = self.binary(B::Less, x, y, signed)?;
                let (accept, reject) = match fun {
                    MathFunction::Min => (x, y),
                    _ => (y, x),
                };
                Ok(self.add(E::Select {
                    condition,
                    accept,
                    reject,
                }))
            }
            _ => bail!(
                NoKernel,
                "wgpu: {fun:?} of 64-bit integers, which the adapter does not have"
            ),
        }
    }

    /// One number as one of another type; one of the two has 64 bits.
    fn convert(&mut self, x: At, from: Scalar, to: Scalar) -> Result<At> {
        let signed = from.kind == ScalarKind::Sint;
        if is_long(from) {
            return match (to.kind, to.width) {
                (ScalarKind::Sint | ScalarKind::Uint, 8) => Ok(x),
                (ScalarKind::Uint, 4) => Ok(self.element(x, 0)),
                (kind @ ScalarKind::Sint, 4) => {
                    let expr = self.element(x, 0);
                    let convert = None;
                    Ok(self.add(E::As {
                        expr,
                        kind,
                        convert,
                    }))
                }
                (ScalarKind::Bool, _) => self.call("words_true", vec![x]),
                (ScalarKind::Float, 4) if signed => self.call("words_float_signed", vec![x]),
                (ScalarKind::Float, 4) => self.call("words_float_unsigned", vec![x]),
                _ => bail!(NoKernel, "wgpu: 64-bit integers as {to:?}"),
            };
        }
        match (from.kind, from.width) {
            (ScalarKind::Sint, 4) => self.call("words_of_signed", vec![x]),
            (ScalarKind::Uint, 4) => self.call("words_of_unsigned", vec![x]),
            (ScalarKind::Bool, _) => self.call("words_of_bool", vec![x]),
            (ScalarKind::Float, 4) if to.kind == ScalarKind::Sint => {
                self.call("words_of_float", vec![x])
            }
            _ => bail!(NoKernel, "wgpu: {from:?} as 64-bit integers"),
        }
    }

    /// An expression with its operands where they are now.
    fn plain(&self, old: &E) -> Result<E> {
        let mut e = old.clone();
        let operands: Vec<&mut At> = match &mut e {
            E::Compose { ty, components } => {
                *ty = self.all.ty(*ty);
                components.iter_mut().collect()
            }
            E::Access { base, index } => vec![base, index],
            E::AccessIndex { base, .. } => vec![base],
            E::Splat { value, .. } => vec![value],
            E::Swizzle { vector, .. } => vec![vector],
            E::Load { pointer } => vec![pointer],
            E::Unary { expr, .. } | E::As { expr, .. } => vec![expr],
            E::Binary { left, right, .. } => vec![left, right],
            E::Select {
                condition,
                accept,
                reject,
            } => vec![condition, accept, reject],
            E::Relational { argument, .. } => vec![argument],
            E::Math {
                arg,
                arg1,
                arg2,
                arg3,
                ..
            } => {
                let more = [arg1, arg2, arg3].into_iter().filter_map(Option::as_mut);
                std::iter::once(arg).chain(more).collect()
            }
            E::ArrayLength(of) => vec![of],
            other => bail!(
                NoKernel,
                "wgpu: {other:?} in a kernel with 64-bit integers, which the adapter does not have"
            ),
        };
        for h in operands {
            *h = self.at(*h)?;
        }
        Ok(e)
    }

    fn statements(&mut self, old: &Block) -> Result<Block> {
        let (outer, from) = (std::mem::take(&mut self.block), self.from);
        self.from = self.new.expressions.len();
        debug_assert_eq!(from, self.from, "all was evaluated before the block");
        for s in old.iter() {
            self.statement(s)?;
        }
        self.flush();
        Ok(std::mem::replace(&mut self.block, outer))
    }

    fn statement(&mut self, s: &S) -> Result<()> {
        if let S::Emit(range) = s {
            return range.clone().try_for_each(|h| self.expression(h));
        }
        self.flush();
        let at = |body: &Self, h: &At| body.at(*h);
        let new = match s {
            S::Block(b) => S::Block(self.statements(b)?),
            S::If {
                condition,
                accept,
                reject,
            } => S::If {
                condition: at(self, condition)?,
                accept: self.statements(accept)?,
                reject: self.statements(reject)?,
            },
            S::Switch { selector, cases } => {
                let mut cases = cases.clone();
                for case in &mut cases {
                    case.body = self.statements(&case.body)?;
                }
                S::Switch {
                    selector: at(self, selector)?,
                    cases,
                }
            }
            S::Loop {
                body,
                continuing,
                break_if,
            } => {
                let (body, continuing) = (self.statements(body)?, self.statements(continuing)?);
                let break_if = break_if.as_ref().map(|h| at(self, h)).transpose()?;
                S::Loop {
                    body,
                    continuing,
                    break_if,
                }
            }
            S::Return { value } => S::Return {
                value: value.as_ref().map(|h| at(self, h)).transpose()?,
            },
            S::Break | S::Continue | S::Kill | S::ControlBarrier(_) | S::MemoryBarrier(_) => {
                s.clone()
            }
            S::Store { pointer, value } => S::Store {
                pointer: at(self, pointer)?,
                value: at(self, value)?,
            },
            S::Atomic {
                pointer,
                fun,
                value,
                result,
            } => {
                let fun = match fun {
                    AtomicFunction::Exchange { compare: Some(h) } => AtomicFunction::Exchange {
                        compare: Some(at(self, h)?),
                    },
                    other => *other,
                };
                S::Atomic {
                    pointer: at(self, pointer)?,
                    fun,
                    value: at(self, value)?,
                    result: result.map(|h| self.given(h)),
                }
            }
            S::WorkGroupUniformLoad { pointer, result } => S::WorkGroupUniformLoad {
                pointer: at(self, pointer)?,
                result: self.given(*result),
            },
            S::Call {
                function,
                arguments,
                result,
            } => S::Call {
                function: *function,
                arguments: arguments
                    .iter()
                    .map(|h| at(self, h))
                    .collect::<Result<_>>()?,
                result: result.map(|h| self.given(h)),
            },
            S::SubgroupBallot { result, predicate } => S::SubgroupBallot {
                predicate: predicate.as_ref().map(|h| at(self, h)).transpose()?,
                result: self.given(*result),
            },
            S::SubgroupGather {
                mode,
                argument,
                result,
            } if self.long(*argument).is_none() => {
                let mut mode = *mode;
                match &mut mode {
                    GatherMode::Broadcast(h)
                    | GatherMode::Shuffle(h)
                    | GatherMode::ShuffleDown(h)
                    | GatherMode::ShuffleUp(h)
                    | GatherMode::ShuffleXor(h)
                    | GatherMode::QuadBroadcast(h) => *h = at(self, h)?,
                    GatherMode::BroadcastFirst | GatherMode::QuadSwap(_) => {}
                }
                S::SubgroupGather {
                    mode,
                    argument: at(self, argument)?,
                    result: self.given(*result),
                }
            }
            S::SubgroupCollectiveOperation {
                op,
                collective_op,
                argument,
                result,
            } if self.long(*argument).is_none() => S::SubgroupCollectiveOperation {
                op: *op,
                collective_op: *collective_op,
                argument: at(self, argument)?,
                result: self.given(*result),
            },
            other => bail!(
                NoKernel,
                "wgpu: {other:?} in a kernel with 64-bit integers, which the adapter does not have"
            ),
        };
        self.block.push(new, SPAN);
        Ok(())
    }

    /// What a statement gives.
    fn given(&mut self, old: At) -> At {
        let e = match &self.old.expressions[old] {
            E::AtomicResult { ty, comparison } => E::AtomicResult {
                ty: self.all.ty(*ty),
                comparison: *comparison,
            },
            E::WorkGroupUniformLoadResult { ty } => E::WorkGroupUniformLoadResult {
                ty: self.all.ty(*ty),
            },
            E::SubgroupOperationResult { ty } => E::SubgroupOperationResult {
                ty: self.all.ty(*ty),
            },
            other => other.clone(),
        };
        let new = self.result(e);
        self.map[old.index()] = Some(new);
        new
    }
}
