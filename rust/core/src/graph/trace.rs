//! A tracer, the smallest interpreter that is of use: it records what a training step asks for, as
//! a flat list, and replays the list on other data. The result has every bit of a step that ran as
//! usual, so nothing that computes or writes can have gone past it.

use crate::autograd::{backward, Request as Pass};
use crate::device::Device;
use crate::dispatch::{self, Interpreter, Request, RequestKind};
use crate::dtype::DType;
use crate::error::Result;
use crate::meta::Meta;
use crate::op::{Op, Tensors};
use crate::ops::table;
use crate::rng::manual_seed;
use crate::schema::{Dest, Value};
use crate::tensor::Tensor;
use std::sync::{Arc, Mutex};

/// A tensor of a trace: which memory, and how it is read. Tensors that alias each other have one
/// number, so that views need not be followed.
#[derive(Clone, Debug, PartialEq)]
struct Id {
    memory: usize,
    meta: Meta,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Compute,
    Into,
    View,
}

#[derive(PartialEq)]
struct Step {
    kind: Kind,
    /// None for views, which replay as what they are: other ids of the same memory.
    op: Option<Arc<dyn Op>>,
    x: Vec<Id>,
    y: Vec<Id>,
}

#[derive(Default)]
struct Trace {
    steps: Vec<Step>,
    /// What keeps each memory alive, and what it held where the trace did not make it.
    memory: Vec<(Tensor, Option<Vec<u8>>)>,
}

#[derive(Default)]
struct Tracer(Mutex<Trace>);

fn bytes(t: &Tensor) -> &[u8] {
    let s = t.storage();
    // SAFETY: host memory of so many bytes; the tests look at one tensor at a time.
    unsafe { std::slice::from_raw_parts(s.ptr(), s.bytes()) }
}

impl Trace {
    fn id(&mut self, t: &Tensor, made: bool) -> Id {
        let known = self.memory.iter().position(|(m, _)| m.shares_storage(t));
        let memory = known.unwrap_or_else(|| {
            let start = (!made).then(|| bytes(t).to_vec());
            self.memory.push((t.clone(), start));
            self.memory.len() - 1
        });
        let meta = t.meta().clone();
        Id { memory, meta }
    }

    /// Runs the list again. `given` replaces what tensors held before.
    fn replay(&self, given: &[(&Tensor, &Tensor)]) -> Replay<'_> {
        let mut memory: Vec<Option<Tensor>> = Vec::new();
        for (old, start) in &self.memory {
            let new = given.iter().find(|(t, _)| t.shares_storage(old));
            let start = new.map(|(_, t)| bytes(t).to_vec()).or(start.clone());
            memory.push(start.map(|b| Tensor::from_slice(&b, &[b.len()], DType::U8).unwrap()));
        }
        let mut replay = Replay {
            trace: self,
            memory,
        };
        for step in &self.steps {
            let Some(op) = &step.op else { continue };
            let x: Vec<Tensor> = step.x.iter().map(|id| replay.tensor(id)).collect();
            let x: Vec<&Tensor> = x.iter().collect();
            if step.kind == Kind::Into {
                let y: Vec<Tensor> = step.y.iter().map(|id| replay.tensor(id)).collect();
                dispatch::compute_into(&**op, &x, &y).unwrap();
                continue;
            }
            let y = dispatch::compute(&**op, &x).unwrap();
            for (id, t) in step.y.iter().zip(&y) {
                assert_eq!(&id.meta, t.meta(), "{op:?}");
                replay.memory[id.memory] = Some(t.clone());
            }
        }
        replay
    }
}

struct Replay<'a> {
    trace: &'a Trace,
    memory: Vec<Option<Tensor>>,
}

impl Replay<'_> {
    fn tensor(&self, id: &Id) -> Tensor {
        let memory = self.memory[id.memory]
            .as_ref()
            .expect("made before it is used");
        let m = &id.meta;
        Tensor::from_storage(memory.storage().clone(), m.layout().clone(), m.dtype())
            .with_wrapped(m.is_wrapped())
    }

    /// What stands for a tensor of the recorded run.
    fn of(&self, t: &Tensor) -> Tensor {
        let known = |(m, _): &(Tensor, Option<Vec<u8>>)| m.shares_storage(t);
        let memory = self.trace.memory.iter().position(known);
        let memory = memory.unwrap_or_else(|| panic!("{t:?} was made past the tracer"));
        let meta = t.meta().clone();
        self.tensor(&Id { memory, meta })
    }
}

impl Interpreter for Tracer {
    fn apply(&self, request: &Request) -> Result<Tensors> {
        let ids = |x: &mut dyn Iterator<Item = &Tensor>, made| -> Vec<Id> {
            let mut trace = self.0.lock().unwrap();
            x.map(|t| trace.id(t, made)).collect()
        };
        let x = ids(&mut request.x.iter().copied(), false);
        let (kind, op) = match request.kind {
            RequestKind::Compute { op } => (Kind::Compute, Some(op.keep())),
            RequestKind::Into { op, .. } => (Kind::Into, Some(op.keep())),
            RequestKind::View { .. } => (Kind::View, None),
        };
        let into = match request.kind {
            RequestKind::Into { y, .. } => ids(&mut y.iter(), false),
            _ => Vec::new(),
        };
        let out = dispatch::apply(request)?;
        let y = match kind {
            Kind::Into => into,
            _ => ids(&mut out.iter(), true),
        };
        let step = Step { kind, op, x, y };
        self.0.lock().unwrap().steps.push(step);
        Ok(out)
    }
}

fn record<R>(f: impl FnOnce() -> R) -> (R, Trace) {
    let tracer = Arc::new(Tracer::default());
    let out = dispatch::interpreted(tracer.clone(), f);
    let trace = std::mem::take(&mut *tracer.0.lock().unwrap());
    (out, trace)
}

/// Calls a public function: the first overload that takes so many arguments, `_` in place.
fn invoke(name: &str, mut values: Vec<Value>) -> Value {
    let (plain, inplace) = match name.strip_suffix('_') {
        Some(stem) if !table().iter().any(|op| op.schema.name == name) => (stem, true),
        _ => (name, false),
    };
    let op = table()
        .iter()
        .find(|op| op.schema.name == plain && op.schema.params.len() >= values.len())
        .expect(name);
    let dest = match inplace {
        true => Dest::InPlace,
        false => Dest::New,
    };
    for p in &op.schema.params[values.len()..] {
        values.push(p.default.clone().unwrap_or(Value::None));
    }
    op.entry.invoke(&op.schema, &mut values, &dest).unwrap()
}

fn call(name: &str, values: Vec<Value>) -> Tensor {
    match invoke(name, values) {
        Value::Tensor(t) => t,
        Value::Tuple(mut all) => all.swap_remove(0),
        other => panic!("{name} gave {other:?}"),
    }
}

fn numbers(shape: &[usize], seed: u64) -> Tensor {
    let n: usize = shape.iter().product();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let data: Vec<f32> = (0..n)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(seed);
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect();
    Tensor::from_slice(&data, shape, DType::F32).unwrap()
}

/// A small network, its optimisers' state and what one step gives.
struct Model {
    x: Tensor,
    classes: Tensor,
    params: Vec<Tensor>,
    /// Running mean and variance; then a buffer of momentum and averages for each parameter.
    running: Vec<Tensor>,
    momentum: Vec<Tensor>,
    averages: Vec<Tensor>,
    squares: Vec<Tensor>,
    times: Vec<Tensor>,
}

impl Model {
    fn new(seed: u64) -> Model {
        let shapes: [&[usize]; 5] = [&[8, 6], &[8], &[3, 8], &[3], &[10, 6]];
        let like = |f: &dyn Fn(u64, &[usize]) -> Tensor| -> Vec<Tensor> {
            shapes
                .iter()
                .zip(seed + 3..)
                .map(|(s, i)| f(i, s))
                .collect()
        };
        let zeros = |_: u64, s: &[usize]| Tensor::zeros(s, DType::F32, Device::Cpu).unwrap();
        let classes: Vec<i64> = (0..7).map(|i| ((i + seed) % 3) as i64).collect();
        let params = like(&|i, s| numbers(s, i));
        for p in &params {
            p.set_requires_grad(true).unwrap();
        }
        Model {
            x: numbers(&[7, 6], seed),
            classes: Tensor::from_slice(&classes, &[7], DType::I64).unwrap(),
            params,
            running: vec![
                numbers(&[8], seed + 1),
                numbers(&[8], seed + 2).mul_scalar(0.0).unwrap(),
            ],
            momentum: like(&zeros),
            averages: like(&zeros),
            squares: like(&zeros),
            times: shapes
                .iter()
                .map(|_| numbers(&[], 1).mul_scalar(0.0).unwrap())
                .collect(),
        }
    }

    /// Everything that a step reads.
    fn all(&self) -> Vec<&Tensor> {
        let lists = [&self.params, &self.running, &self.momentum, &self.averages];
        let more = [&self.squares, &self.times];
        let lists = lists.into_iter().chain(more).flatten();
        [&self.x, &self.classes].into_iter().chain(lists).collect()
    }

    fn loss(&self, drop: bool) -> Tensor {
        let t = |t: &Tensor| Value::Tensor(t.clone());
        let [w, b, v, c, table] = &self.params[..] else {
            panic!("five parameters")
        };
        // Views and writes through them, in a graph.
        let rows = call("embedding", vec![t(table), t(&self.classes)]);
        let x = self.x.add(&rows).unwrap();
        let part = call(
            "narrow",
            vec![t(&x), Value::Int(1), Value::Int(2), Value::Int(3)],
        );
        call("mul_", vec![t(&part), Value::Tensor(numbers(&[3], 5))]);
        call(
            "fill_",
            vec![
                t(&call("select", vec![t(&x), Value::Int(0), Value::Int(1)])),
                Value::Tensor(Tensor::number(0.5.into()).unwrap()),
            ],
        );
        let h = call("linear", vec![t(&x), t(w), t(b)]);
        let (mean, var) = (&self.running[0], &self.running[1]);
        let h = call(
            "batch_norm",
            vec![
                t(&h),
                Value::None,
                Value::None,
                t(mean),
                t(var),
                Value::Bool(true),
                Value::Float(0.1),
                Value::Float(1e-5),
                Value::Bool(false),
            ],
        );
        let h = call("gelu", vec![t(&h)]);
        let h = match drop {
            true => {
                let h = call("dropout", vec![t(&h), Value::Float(0.4), Value::Bool(true)]);
                let noise = Tensor::empty(&[8], DType::F32, Device::Cpu).unwrap();
                call(
                    "normal_",
                    vec![t(&noise), Value::Float(1.0), Value::Float(0.1)],
                );
                let order = call("randperm", vec![Value::Int(7)]);
                call(
                    "index_select",
                    vec![t(&h.mul(&noise).unwrap()), Value::Int(0), t(&order)],
                )
            }
            false => h,
        };
        let y = h.matmul(&v.t().unwrap()).unwrap();
        call("add_", vec![t(&y), t(c)]);
        call("cross_entropy_loss", vec![t(&y), t(&self.classes)])
    }

    /// Two backward passes, so that the second adds to gradients, and two optimisers. Gives the
    /// losses and the gradients.
    fn step(&self, drop: bool) -> Vec<Tensor> {
        let mut out = Vec::new();
        for _ in 0..2 {
            let loss = self.loss(drop);
            let one = Tensor::full(&[], 1.0.into(), DType::F32, Device::Cpu).unwrap();
            let pass = Pass {
                roots: &[(loss.edge().unwrap().unwrap(), one)],
                inputs: &[],
                accumulate: false,
                keep_graph: false,
                create_graph: false,
            };
            backward(&pass).unwrap();
            out.push(loss);
        }
        let list = |l: &[Tensor]| Value::Tensors(l.iter().map(Tensor::detach).collect());
        let grads: Vec<Tensor> = self.params.iter().map(|p| p.grad().unwrap()).collect();
        let number = |v: f64| Value::Float(v);
        let lr = || Value::Tensor(Tensor::number(0.1.into()).unwrap());
        invoke(
            "_fused_sgd_",
            vec![
                list(&self.params),
                list(&grads),
                list(&self.momentum),
                number(0.01),
                number(0.9),
                lr(),
                number(0.0),
                Value::Bool(true),
                Value::Bool(false),
                Value::Bool(false),
            ],
        );
        invoke("_foreach_add_", vec![list(&self.times), Value::Int(1)]);
        invoke(
            "_fused_adam_",
            vec![
                list(&self.params),
                list(&grads),
                list(&self.averages),
                list(&self.squares),
                Value::Tensors(vec![]),
                list(&self.times),
                lr(),
                number(0.9),
                number(0.99),
                number(0.01),
                number(1e-8),
                Value::Bool(false),
                Value::Bool(false),
            ],
        );
        out.extend(grads);
        out
    }
}

fn assert_same(a: &Tensor, b: &Tensor) {
    assert_eq!(a.meta().shape(), b.meta().shape());
    let (a, b) = (a.contiguous().unwrap(), b.contiguous().unwrap());
    let (a, b) = (a.copy_dense().unwrap(), b.copy_dense().unwrap());
    assert_eq!(bytes(&a), bytes(&b));
}

/// Records a step of one model and replays it for another, which also takes it as usual.
fn check(drop: bool, seed: u64) {
    let (a, b) = (Model::new(20), Model::new(60));
    let (made, trace) = record(|| a.step(drop));
    let given: Vec<(&Tensor, &Tensor)> = a.all().into_iter().zip(b.all()).collect();
    manual_seed(seed);
    let replay = trace.replay(&given);
    manual_seed(seed);
    let expected = b.step(drop);
    for (old, new) in made.iter().zip(&expected) {
        assert_same(&replay.of(old), new);
    }
    for (old, new) in a.all().into_iter().zip(b.all()) {
        assert_same(&replay.of(old), new);
    }
    // What was recorded is a value.
    let c = Model::new(40);
    let (_, again) = record(|| c.step(drop));
    assert!(trace.steps == again.steps);
    // Of the second pass, products are added to gradients in place.
    let product = |s: &Step| format!("{:?}", s.op).contains("MatMul");
    assert!(trace
        .steps
        .iter()
        .any(|s| s.kind == Kind::Into && product(s)));
    for kind in [Kind::Compute, Kind::Into, Kind::View] {
        assert!(trace.steps.iter().any(|s| s.kind == kind), "no {kind:?}");
    }
}

/// The generator is everybody's.
static ALONE: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

#[test]
fn recorded_step_replays_on_other_data_bit_for_bit() {
    let _alone = ALONE.lock();
    check(false, 1);
}

#[test]
fn recorded_step_with_random_ops_replays_with_the_generator() {
    let _alone = ALONE.lock();
    check(true, 7);
}

#[test]
fn interpreters_see_a_request_from_the_latest_to_the_first_and_are_out_of_force_meanwhile() {
    struct Doubles(Arc<Mutex<Vec<usize>>>, usize);
    impl Interpreter for Doubles {
        fn apply(&self, request: &Request) -> Result<Tensors> {
            self.0.lock().unwrap().push(self.1);
            let y = dispatch::apply(request)?;
            y.iter().map(|t| t.add(t)).collect()
        }
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let x = numbers(&[3], 1);
    let y = dispatch::interpreted(Arc::new(Doubles(seen.clone(), 1)), || {
        dispatch::interpreted(Arc::new(Doubles(seen.clone(), 2)), || x.neg().unwrap())
    });
    // The upper one's addition is a request to the lower one, which doubles it as well.
    assert_eq!(*seen.lock().unwrap(), [2, 1, 1]);
    assert_same(&y, &x.mul_scalar(-8.0).unwrap());
    assert_same(&x.neg().unwrap(), &x.mul_scalar(-1.0).unwrap());
}

#[test]
fn interpreters_are_in_force_again_after_an_error() {
    struct Refuses;
    impl Interpreter for Refuses {
        fn apply(&self, _: &Request) -> Result<Tensors> {
            Err(crate::error::Error::runtime("no"))
        }
    }
    let x = numbers(&[3], 1);
    dispatch::interpreted(Arc::new(Refuses), || {
        assert!(x.neg().is_err());
        assert!(x.neg().is_err());
    });
    assert!(x.neg().is_ok());
}
