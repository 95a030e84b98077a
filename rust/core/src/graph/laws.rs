//! A program whose steps are fused gives every bit of the call that it was recorded from.

use super::{fuse, Ending, Program, Recorder, Run, Trace};
use crate::autograd::{backward, Request};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::table;
use crate::schema::{Dest, Type, Value};
use crate::tensor::Tensor;
use std::sync::Arc;

type Function<'a> = &'a dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>;

fn recorded(f: Function, x: &[Tensor], before: Option<&Trace>) -> Option<Trace> {
    let recorder = Arc::new(Recorder::new(x, before));
    let y = dispatch::interpreted(recorder.clone(), || f(x)).ok()?;
    match recorder.finish(&y).unwrap() {
        Ending::Done(trace) => Some(*trace),
        Ending::Refused(_) => None,
    }
}

fn program(f: Function, x: &[Tensor]) -> Option<Program> {
    let first = recorded(f, x, None)?;
    let second = recorded(f, x, Some(&first))?;
    let same = second.differs(&first).unwrap().is_none();
    same.then(|| second.program(&first))
}

fn bits(t: &Tensor) -> Vec<u8> {
    let t = t.copy_dense().unwrap();
    let n = t.numel() * t.dtype().size();
    // SAFETY: contiguous host memory of so many bytes.
    unsafe { std::slice::from_raw_parts(t.bytes_ptr(), n).to_vec() }
}

/// Runs a function as it is and as a fused program on copies of the same tensors. Gives how many steps went,
/// or `None` where it cannot be recorded.
fn check(f: Function, x: &dyn Fn() -> Vec<Tensor>, tile: usize, what: &str) -> Option<usize> {
    let mut program = program(f, &x())?;
    let (steps, _) = fuse::fused(&program, Some(tile));
    let fewer = program.steps().len() - steps.len();
    let names: Vec<String> = steps.iter().map(|s| format!("{:?}", s.op)).collect();
    program.set_steps(steps);
    let mut run = Run::new(Arc::new(program)).unwrap();
    let (mine, theirs) = (x(), x());
    let got = run.call(&mine).unwrap();
    let want = f(&theirs).unwrap();
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().chain(&mine).zip(want.iter().chain(&theirs)) {
        assert_eq!(got.meta(), want.meta(), "{what}");
        let (got_bits, want_bits) = (bits(got), bits(want));
        if got_bits != want_bits {
            let size = got.dtype().size();
            let differs = |i: &usize| got_bits[i * size..][..size] != want_bits[i * size..][..size];
            let at: Vec<usize> = (0..got.numel()).filter(differs).take(8).collect();
            panic!(
                "{what}: {names:?}\nat {at:?} of {:?}\n{got:?}\n{want:?}",
                got.shape()
            );
        }
    }
    Some(fewer)
}

/// Numbers as they come from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = (self.0 ^ self.0 >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.0 ^= self.0 >> 32;
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n
    }
    /// A tensor of a type; some floats are no numbers.
    fn tensor(&mut self, shape: &[usize], dtype: DType) -> Tensor {
        const SPECIAL: [f32; 6] = [
            0.0,
            -0.0,
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::from_bits(77),
        ];
        let n: usize = shape.iter().product();
        let data: Vec<f32> = (0..n)
            .map(|_| match self.below(40) {
                0 => SPECIAL[self.below(6)],
                _ => (self.below(1 << 20) as f32 / (1 << 17) as f32) - 4.0,
            })
            .collect();
        let x = Tensor::from_slice(&data, shape, DType::F32).unwrap();
        match dtype.is_integral() {
            // What no integer holds converts to one that the machine chooses.
            true => {
                let whole: Vec<i64> = data.iter().map(|&v| v.clamp(-4.0, 4.0) as i64).collect();
                let x = Tensor::from_slice(&whole, shape, DType::I64).unwrap();
                x.to_dtype(dtype).unwrap()
            }
            false => x.to_dtype(dtype).unwrap(),
        }
    }
}

fn call(name: &str, values: &[Value]) -> Result<Tensor> {
    let own = table().iter().any(|op| op.schema.name == name);
    let (plain, dest) = match name.strip_suffix('_') {
        Some(stem) if !own => (stem, Dest::InPlace),
        _ => (name, Dest::New),
    };
    let overload =
        |op: &&crate::ops::Op| op.schema.name == plain && op.schema.params.len() >= values.len();
    let op = table().iter().find(overload).expect(name);
    let mut values = values.to_vec();
    for p in &op.schema.params[values.len()..] {
        values.push(p.default.clone().unwrap_or(Value::None));
    }
    match op.entry.invoke(&op.schema, &mut values, &dest)? {
        Value::Tensor(t) => Ok(t),
        Value::Tuple(mut all) => Ok(all.swap_remove(0)),
        other => panic!("{name} gave {other:?}"),
    }
}

const TYPES: [DType; 9] = [
    DType::F32,
    DType::F64,
    DType::BF16,
    DType::F16,
    DType::I64,
    DType::I32,
    DType::U8,
    DType::I8,
    DType::Bool,
];

/// Every public function of tensors and numbers in the middle of a chain, in each type, with operands of each
/// layout.
#[test]
fn every_pointwise_op_in_a_chain_gives_its_own_bits() {
    let mut fused = std::collections::BTreeSet::new();
    for op in table() {
        let schema = &op.schema;
        let plain =
            |t: &Type| !matches!(t, Type::Tensors | Type::OptionalTensors | Type::Generator);
        let tensor = |t: &Type| matches!(t, Type::Tensor | Type::Operand);
        let tensors = schema.params.iter().filter(|p| tensor(&p.ty)).count();
        let first = schema.params.first().is_some_and(|p| p.ty == Type::Tensor);
        if !first || tensors > 3 || !schema.params.iter().all(|p| plain(&p.ty)) {
            continue;
        }
        for (i, dtype) in TYPES.into_iter().enumerate() {
            let f = |x: &[Tensor]| -> Result<Vec<Tensor>> {
                let mut others = x[1..].iter().cycle();
                let mask = x[0].to_dtype(DType::Bool)?;
                let own = |t: &Tensor| {
                    let [m, t] = [&mask, t].map(|t| Value::Tensor(t.clone()));
                    call("where", &[m, t.clone(), t])
                };
                let mut values: Vec<Value> = vec![own(&x[0])?.into()];
                for p in &schema.params[1..] {
                    values.push(match (&p.ty, &p.default) {
                        (t, _) if tensor(t) => others.next().expect("a cycle").clone().into(),
                        (_, Some(v)) => v.clone(),
                        (Type::Scalar | Type::Float, _) => Value::Float(0.5),
                        (Type::Int, _) => Value::Int(1),
                        _ => Value::None,
                    });
                }
                let y = match op.entry.invoke(schema, &mut values, &Dest::New)? {
                    Value::Tensor(t) => t,
                    _ => crate::bail!(Runtime, "another result"),
                };
                let z = own(&y)?;
                Ok(vec![y, z])
            };
            let x = |form: usize| {
                move || {
                    let mut random = Random(7 + i as u64);
                    let mut x = vec![random.tensor(&[9, 31], dtype)];
                    let shapes: [&[usize]; 4] = [&[9, 31], &[31], &[9, 1], &[]];
                    x.push(random.tensor(shapes[form % 4], dtype));
                    x.push(random.tensor(shapes[(form + 1) % 4], dtype));
                    x
                }
            };
            for form in 0..if tensors > 1 { 4 } else { 1 } {
                let x = x(form);
                if f(&x()).is_err() {
                    continue;
                }
                let what = format!("{} {dtype:?} {form}", schema.name);
                if check(&f, &x, 64, &what).is_some_and(|n| n > 1) {
                    fused.insert(schema.name);
                }
            }
        }
    }
    assert!(fused.len() > 200, "{} {fused:?}", fused.len());
}

/// A network's loss and gradients, whose inputs keep their places.
#[test]
fn gradients_in_a_chain_give_their_own_bits() {
    let mut random = Random(3);
    let given = |x: &Tensor| {
        x.set_requires_grad(true).unwrap();
        x.clone()
    };
    let x = [
        given(&random.tensor(&[40, 48], DType::F32)),
        given(&random.tensor(&[48], DType::F32)),
        given(&random.tensor(&[], DType::F32)),
    ];
    let f = |x: &[Tensor]| -> Result<Vec<Tensor>> {
        let y = x[0].mul(&x[1])?.add(&x[2])?;
        let y = call("gelu", &[y.into()])?.mul(&x[2])?;
        let loss = call("tanh", &[y.into()])?.sum_all()?;
        let one = Tensor::full(&[], 1.0.into(), DType::F32, loss.device())?;
        let edges: Vec<_> = x.iter().map(|t| t.edge().unwrap().unwrap()).collect();
        let grads = backward(&Request {
            roots: &[(loss.edge()?.unwrap(), one)],
            inputs: &edges,
            accumulate: false,
            keep_graph: false,
            create_graph: false,
        })?;
        let mut out = vec![loss.detach()];
        out.extend(grads.into_iter().flatten());
        Ok(out)
    };
    for tile in [64, 1000, 4096] {
        let fewer = check(&f, &|| x.to_vec(), tile, "gradients");
        assert!(fewer.is_some_and(|n| n >= 7), "{fewer:?}");
    }
}
