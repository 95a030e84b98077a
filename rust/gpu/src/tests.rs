//! Drivers against plain loops on the host. Skipped, with a line saying so, without an adapter.

use super::pointwise::pointwise;
use super::reduce::{arg_reduce, reduce, Combine, Map};
use super::testing::{close, gpu, noise};
use super::*;
use crate::dtype::DType;
use crate::shape::DimSet;

/// A contiguous tensor on the GPU from host elements.
fn put<T: bytemuck::NoUninit>(gpu: &Gpu, shape: &[usize], dtype: DType, data: &[T]) -> Scratch {
    let t = Scratch::new(gpu, shape, dtype).unwrap();
    gpu.write(&t.buffer, 0, bytemuck::cast_slice(data)).unwrap();
    t
}

fn get<T: bytemuck::AnyBitPattern + bytemuck::NoUninit>(gpu: &Gpu, t: &Scratch) -> Vec<T> {
    let mut out = vec![T::zeroed(); t.view().numel()];
    gpu.read(&t.buffer, 0, bytemuck::cast_slice_mut(&mut out))
        .unwrap();
    out
}

#[test]
fn write_then_read_any_alignment_gives_the_bytes() {
    let Some((_turn, gpu)) = gpu() else { return };
    let b = gpu.alloc(64).unwrap();
    gpu.write(&b, 0, &[7; 64]).unwrap();
    gpu.write(&b, 5, &[1, 2, 3]).unwrap();
    gpu.write(&b, 61, &[9, 8, 9]).unwrap();
    let mut out = [0u8; 64];
    gpu.read(&b, 0, &mut out).unwrap();
    let mut want = [7u8; 64];
    want[5..8].copy_from_slice(&[1, 2, 3]);
    want[61..].copy_from_slice(&[9, 8, 9]);
    assert_eq!(out, want);
    let mut part = [0u8; 5];
    gpu.read(&b, 3, &mut part).unwrap();
    assert_eq!(part, want[3..8]);
    gpu.copy(&b, 5, &b, 6, 3).unwrap();
    gpu.read(&b, 3, &mut part).unwrap();
    assert_eq!(part, [7, 7, 1, 1, 2]);
}

#[test]
fn pointwise_broadcast_and_in_place_match_the_host() {
    let Some((_turn, gpu)) = gpu() else { return };
    let (x, row) = (noise(12, 1), noise(4, 2));
    let (a, b) = (
        put(gpu, &[3, 4], DType::F32, &x),
        put(gpu, &[4], DType::F32, &row),
    );
    let b = View {
        shape: &[3, 4],
        strides: &[0, 1],
        ..b.view()
    };
    let body = "fn op(a: Acc, b: Acc) -> Acc { return a + scalar(0u) * b; }\n";
    let y = a.view();
    pointwise(
        gpu,
        Acc::F32,
        body,
        &[a.view(), b],
        y,
        &[Acc::F32.words(2.0)],
    )
    .unwrap();
    let want: Vec<f64> = (0..12)
        .map(|i| x[i] as f64 + 2.0 * row[i % 4] as f64)
        .collect();
    close(&get(gpu, &a), &want, 1e-6);
}

#[test]
fn pointwise_of_six_strided_inputs_matches_the_host() {
    let Some((_turn, gpu)) = gpu() else { return };
    // Each input lies in another order, so that no two of the three dimensions run together.
    let orders: [[isize; 3]; 6] = [
        [12, 4, 1],
        [1, 2, 6],
        [4, 8, 1],
        [3, 6, 1],
        [1, 8, 2],
        [12, 1, 3],
    ];
    let data: Vec<Vec<f32>> = (0..6).map(|t| noise(24, t)).collect();
    let on: Vec<Scratch> = data
        .iter()
        .map(|d| put(gpu, &[24], DType::F32, d))
        .collect();
    let shape = [2, 3, 4];
    let y = Scratch::new(gpu, &shape, DType::F32).unwrap();
    let x: Vec<View> = on
        .iter()
        .zip(&orders)
        .map(|(t, strides)| View {
            shape: &shape,
            strides,
            ..t.view()
        })
        .collect();
    let body = "fn op(a: Acc, b: Acc, c: Acc, d: Acc, e: Acc, f: Acc) -> Acc {
    return a + 2.0 * b + 3.0 * c + 4.0 * d + 5.0 * e + 6.0 * f;
}\n";
    pointwise(gpu, Acc::F32, body, &x, y.view(), &[]).unwrap();
    let mut want = vec![];
    for (i, j, k) in (0..24).map(|n| (n / 12, n / 4 % 3, n % 4)) {
        let term = |t: usize| {
            let [a, b, c] = orders[t];
            let at = i * a + j * b + k * c;
            (t + 1) as f64 * data[t][at as usize] as f64
        };
        want.push((0..6).map(term).sum());
    }
    close(&get(gpu, &y), &want, 1e-5);
}

#[test]
fn copy_every_pair_of_types_converts_as_the_host_does() {
    let Some((_turn, gpu)) = gpu() else { return };
    let types = [
        DType::Bool,
        DType::U8,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ];
    // 35 elements: not a multiple of any word.
    let values: Vec<f64> = (0..35).map(|i| (i * 3) as f64).collect();
    for from in types {
        for to in types {
            let unsupported = |d| d == DType::F64 && !gpu.info().float64;
            if unsupported(from) || unsupported(to) {
                continue;
            }
            let x = Scratch::new(gpu, &[35], from).unwrap();
            gpu.write(&x.buffer, 0, &encode(from, &values)).unwrap();
            let y = Scratch::new(gpu, &[37], to).unwrap();
            copy::fill(gpu, y.view(), Acc::of(to).unwrap().words(0.0)).unwrap();
            // Reversed order through a transposed view, written from the second element on.
            let into = View {
                offset: 1,
                shape: &[5, 7],
                strides: &[7, 1],
                ..y.view()
            };
            let from_view = View {
                shape: &[5, 7],
                strides: &[1, 5],
                ..x.view()
            };
            copy::copy(gpu, from_view, into).unwrap();
            let mut bytes = vec![0u8; 37 * to.size()];
            gpu.read(&y.buffer, 0, &mut bytes).unwrap();
            let held = |d: DType, v: f64| {
                if d == DType::Bool {
                    (v != 0.0) as u8 as f64
                } else {
                    v
                }
            };
            let mut want = vec![0.0; 37];
            for r in 0..5 {
                for c in 0..7 {
                    want[1 + r * 7 + c] = held(to, held(from, values[r + c * 5]));
                }
            }
            assert_eq!(bytes, encode(to, &want), "{from} to {to}");
        }
    }
}

fn encode(dtype: DType, values: &[f64]) -> Vec<u8> {
    let bytes = |v: f64| -> Vec<u8> {
        match dtype {
            DType::Bool => vec![(v != 0.0) as u8],
            DType::U8 => vec![v as u8],
            DType::I8 => vec![v as i8 as u8],
            DType::I16 => (v as i16).to_le_bytes().to_vec(),
            DType::I32 => (v as i32).to_le_bytes().to_vec(),
            DType::I64 => (v as i64).to_le_bytes().to_vec(),
            DType::F16 => half::f16::from_f64(v).to_le_bytes().to_vec(),
            DType::BF16 => half::bf16::from_f64(v).to_le_bytes().to_vec(),
            DType::F32 => (v as f32).to_le_bytes().to_vec(),
            _ => v.to_le_bytes().to_vec(),
        }
    };
    values.iter().flat_map(|&v| bytes(v)).collect()
}

#[test]
fn reduce_any_dimensions_match_the_host() {
    let Some((_turn, gpu)) = gpu() else { return };
    let x = noise(3 * 70 * 50, 3);
    let t = put(gpu, &[3, 70, 50], DType::F32, &x);
    for bits in 1u64..8 {
        let dims = DimSet::of(3, |d| bits >> d & 1 == 1).unwrap();
        let kept: Vec<usize> = (0..3)
            .filter(|&d| !dims.has(d))
            .map(|d| [3, 70, 50][d])
            .collect();
        let mut want = vec![0.0; kept.iter().product()];
        for (i, v) in x.iter().enumerate() {
            let at = [i / 3500, i / 50 % 70, i % 50];
            let mut o = 0;
            for d in 0..3 {
                if !dims.has(d) {
                    o = o * [3, 70, 50][d] + at[d];
                }
            }
            want[o] += *v as f64;
        }
        let y = Scratch::new(gpu, &kept, DType::F32).unwrap();
        reduce(gpu, Combine::Sum, Map::Keep, 1.0, t.view(), dims, y.view()).unwrap();
        close(&get(gpu, &y), &want, 1e-5);
    }
}

#[test]
fn reduce_longer_than_the_loop_limit_is_exact() {
    let Some((_turn, gpu)) = gpu() else { return };
    let n = 3_000_001;
    let x: Vec<f32> = (0..n).map(|i| (i % 3) as f32 - 1.0).collect();
    let t = put(gpu, &[n], DType::F32, &x);
    let y = Scratch::new(gpu, &[], DType::F32).unwrap();
    reduce(
        gpu,
        Combine::Sum,
        Map::Square,
        1.0,
        t.view(),
        [0].into(),
        y.view(),
    )
    .unwrap();
    assert_eq!(get::<f32>(gpu, &y), [x.iter().map(|v| v * v).sum::<f32>()]);
    // A column of the same length.
    let column = View {
        shape: &[n / 3, 3],
        strides: &[3, 1],
        ..t.view()
    };
    let y = Scratch::new(gpu, &[3], DType::F32).unwrap();
    reduce(
        gpu,
        Combine::Sum,
        Map::Keep,
        1.0,
        column,
        [0].into(),
        y.view(),
    )
    .unwrap();
    assert_eq!(get::<f32>(gpu, &y), [-1_000_000.0, 0.0, 1_000_000.0]);
}

#[test]
fn reduce_nan_wins_in_max_and_arg_max() {
    let Some((_turn, gpu)) = gpu() else { return };
    let mut x = noise(100_000, 4);
    x[77_777] = f32::NAN;
    let t = put(gpu, &[100_000], DType::F32, &x);
    let y = Scratch::new(gpu, &[], DType::F32).unwrap();
    let i = Scratch::new(gpu, &[], DType::I64).unwrap();
    reduce(
        gpu,
        Combine::Max,
        Map::Keep,
        1.0,
        t.view(),
        [0].into(),
        y.view(),
    )
    .unwrap();
    assert!(get::<f32>(gpu, &y)[0].is_nan());
    for largest in [true, false] {
        arg_reduce(gpu, largest, t.view(), [0].into(), y.view(), i.view()).unwrap();
        assert!(get::<f32>(gpu, &y)[0].is_nan());
        assert_eq!(get::<i64>(gpu, &i), [77_777]);
    }
}

#[test]
fn memory_thousands_of_steps_stays_flat() {
    let Some((_turn, gpu)) = gpu() else { return };
    let before = gpu.memory().reserved;
    let x = put(gpu, &[1000], DType::F32, &noise(1000, 10));
    let body = "fn op(a: Acc) -> Acc { return a * scalar(0u); }\n";
    for i in 0..5000 {
        let y = Scratch::new(gpu, &[1000], DType::F32).unwrap();
        pointwise(
            gpu,
            Acc::F32,
            body,
            &[x.view()],
            y.view(),
            &[Acc::F32.words(i as f64)],
        )
        .unwrap();
    }
    gpu.synchronize().unwrap();
    // Other tests share the pool: allow for theirs.
    assert!(
        gpu.memory().reserved - before < 64 << 20,
        "{:?}",
        gpu.memory()
    );
}

#[test]
fn pipelines_that_were_dropped_are_made_again_and_give_the_same() {
    let Some((_turn, gpu)) = gpu() else { return };
    let data = noise(40, 11);
    let x = put(gpu, &[40], DType::F32, &data);
    // Each of its own length, so that none waits to be one with others, and all are in one pass.
    let run = |k: usize| {
        let shape = [40 - k];
        let y = Scratch::new(gpu, &shape, DType::F32).unwrap();
        let body = format!("fn op(a: Acc) -> Acc {{ return a + Acc({k}); }}\n");
        let x = View {
            shape: &shape,
            ..x.view()
        };
        pointwise(gpu, Acc::F32, &body, &[x], y.view(), &[]).unwrap();
        y
    };
    let check = |k: usize, y: &Scratch| {
        let want: Vec<f32> = data[..40 - k].iter().map(|v| v + k as f32).collect();
        assert_eq!(get::<f32>(gpu, y), want, "{k}");
    };
    let made = || gpu.stats().pipelines;
    let before = std::mem::replace(&mut gpu.pipelines.lock().turn, 2);
    let recorder = gpu.record_commands().unwrap().unwrap();
    let y = run(0);
    let list = recorder.finish([&x.buffer, &y.buffer].into_iter(), &[]);
    let list = list.unwrap().unwrap();
    for round in 0..3 {
        let begin = made();
        let all: Vec<Scratch> = (1..13).map(run).collect();
        all.iter().enumerate().for_each(|(k, y)| check(k + 1, y));
        assert_eq!(made() - begin, 12, "round {round}");
        gpu.fill_zero(&y.buffer).unwrap();
        gpu.replay(&list).unwrap();
        check(0, &y);
        // The one that a command list holds is there still.
        let begin = made();
        check(0, &run(0));
        assert_eq!(made(), begin, "round {round}");
    }
    gpu.pipelines.lock().turn = before;
}

#[test]
fn alloc_beyond_the_adapter_is_out_of_memory() {
    let Some((_turn, gpu)) = gpu() else { return };
    let e = gpu.alloc(1 << 45).unwrap_err();
    assert_eq!(e.kind, crate::error::Kind::OutOfMemory, "{e}");
    gpu.alloc(1024).unwrap();
}

#[test]
fn shader_of_others_stays_inside_its_buffers() {
    let Some((_turn, gpu)) = gpu() else { return };
    let text = "
override X: u32 = F32;
override Y: u32 = F32;
struct Params { n: u32, far: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<u32>;
var<workgroup> shared_word: u32;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= p.n) { return; }
    // Far behind both buffers: reads nothing of others, and writes nowhere else.
    y[id.x + p.far] = 7u;
    y[id.x] = x[id.x] + 1u + shared_word;
    if (x[id.x + p.far] == 123456789u) { y[id.x] = 0u; }
}
";
    let n = 1024;
    let mine: Vec<i32> = (0..n as i32).collect();
    let x = put(gpu, &[n], DType::I32, &mine);
    let y = put(gpu, &[n], DType::I32, &vec![0i32; n]);
    let neighbours: Vec<Scratch> = (0..64)
        .map(|_| put(gpu, &[n], DType::I32, &vec![123_456_789i32; n]))
        .collect();
    let shader = Shader::<[u32; 2]>::untrusted("mine", text);
    for far in [n as u32, 1 << 14, 1 << 20, 1 << 28, u32::MAX - 2 * n as u32] {
        let launch = shader.launch(Acc::I32);
        let launch = launch.writes("Y", y.view()).reads("X", x.view());
        launch.threads(gpu, &[n as u32, far], n).unwrap();
        let want: Vec<i32> = mine.iter().map(|v| v + 1).collect();
        // A store beyond the end may land on the last element of the same buffer.
        assert_eq!(get::<i32>(gpu, &y)[..n - 1], want[..n - 1], "{far}");
    }
    for other in &neighbours {
        assert_eq!(get::<i32>(gpu, other), vec![123_456_789; n]);
    }
    assert_eq!(get::<i32>(gpu, &x), mine);
}

#[test]
fn shader_of_others_that_does_not_compile_says_so() {
    let Some((_turn, gpu)) = gpu() else { return };
    let y = put(gpu, &[4], DType::I32, &[0i32; 4]);
    for (text, says) in [
        ("fn main() { nonsense }", "mine: the shader did not compile"),
        (
            "// uses everything\noverride Y: u32 = I32;\n",
            "mine: no part \"everything\"",
        ),
    ] {
        let shader = Shader::<[u32; 1]>::untrusted("mine", text);
        let launch = shader.launch(Acc::I32).writes("Y", y.view());
        let e = launch.threads(gpu, &[4], 4).unwrap_err();
        assert!(e.text.contains(says), "{e}");
    }
    gpu.synchronize().unwrap();
}
