//! Launchers of layers and indexing against plain loops on the host.

use super::tests::{close, get, gpu, noise, put};
use super::*;

#[test]
fn index_select_and_add_any_dimension_match_the_host() {
    let Some((_turn, gpu)) = gpu() else { return };
    let index: Vec<i64> = vec![2, 1, 0, 2, 2];
    let ti = put(gpu, &[5], DType::I64, &index);
    let shape = [3, 4, 5];
    for dtype in [DType::I64, DType::F32, DType::U8] {
        for dim in 0..2 {
            let n = shape.iter().product::<usize>();
            let x = Scratch::new(gpu, &shape, dtype).unwrap();
            let bytes: Vec<u8> = (0..n * dtype.size()).map(|i| (i * 7) as u8).collect();
            gpu.write(&x.buffer, 0, &bytes).unwrap();
            let mut out = shape;
            out[dim] = 5;
            let y = Scratch::new(gpu, &out, dtype).unwrap();
            index::index_select(gpu, x.view(), dim, ti.view(), y.view()).unwrap();
            let mut got = vec![0u8; out.iter().product::<usize>() * dtype.size()];
            gpu.read(&y.buffer, 0, &mut got).unwrap();
            let inner = shape[dim + 1..].iter().product::<usize>() * dtype.size();
            let outer: usize = shape[..dim].iter().product();
            let mut want = vec![];
            for o in 0..outer {
                for &i in &index {
                    let i = i.rem_euclid(shape[dim] as i64) as usize;
                    let at = (o * shape[dim] + i) * inner;
                    want.extend_from_slice(&bytes[at..at + inner]);
                }
            }
            assert_eq!(got, want, "{dtype} {dim}");
        }
    }
    let x = put(gpu, &[4, 3], DType::F32, &[1f32; 12]);
    let v = put(gpu, &[5, 3], DType::F32, &noise(15, 1));
    index::index_add(gpu, x.view(), 0, ti.view(), v.view(), 2.0, Some(0)).unwrap();
    let v = noise(15, 1);
    let mut want = [1f64; 12];
    for (j, &i) in index.iter().enumerate().filter(|(_, &i)| i != 0) {
        for c in 0..3 {
            want[i.rem_euclid(4) as usize * 3 + c] += 2.0 * v[j * 3 + c] as f64;
        }
    }
    close(&get(gpu, &x), &want, 1e-6);
}

#[test]
fn index_out_of_range_raises_at_the_next_read() {
    let Some((_turn, gpu)) = gpu() else { return };
    let x = put(gpu, &[4, 3], DType::F32, &[1f32; 12]);
    let index = put(gpu, &[1], DType::I64, &[9i64]);
    let y = Scratch::new(gpu, &[1, 3], DType::F32).unwrap();
    index::index_select(gpu, x.view(), 0, index.view(), y.view()).unwrap();
    let e = gpu.synchronize().unwrap_err();
    assert_eq!(e.kind, crate::error::Kind::Index);
    assert!(
        e.text
            .contains("index 9 is out of bounds for dimension with size 4"),
        "{e}"
    );
    gpu.synchronize().unwrap();
}

#[test]
fn gather_and_scatter_int64_match_the_host() {
    let Some((_turn, gpu)) = gpu() else { return };
    let x: Vec<i64> = (0..12).map(|i| i << 33).collect();
    let tx = put(gpu, &[3, 4], DType::I64, &x);
    let index: Vec<i64> = vec![0, 3, 3, 1, 2, 2];
    let ti = put(gpu, &[3, 2], DType::I64, &index);
    let y = Scratch::new(gpu, &[3, 2], DType::I64).unwrap();
    scatter::gather(gpu, tx.view(), 1, ti.view(), y.view()).unwrap();
    let want: Vec<i64> = (0..6).map(|e| x[e / 2 * 4 + index[e] as usize]).collect();
    assert_eq!(get::<i64>(gpu, &y), want);
    if gpu.info().int64 {
        scatter::scatter(gpu, scatter::Meet::Add, tx.view(), 1, ti.view(), y.view()).unwrap();
        let mut sums = x.clone();
        for e in 0..6 {
            sums[e / 2 * 4 + index[e] as usize] += want[e];
        }
        assert_eq!(get::<i64>(gpu, &tx), sums);
    }
}

#[test]
fn conv2d_gradients_are_the_adjoints_of_the_forward_pass() {
    let Some((_turn, gpu)) = gpu() else { return };
    let c = conv::Conv2d {
        batch: 2,
        in_channels: 6,
        out_channels: 4,
        groups: 2,
        input: [9, 7],
        output: [5, 6],
        kernel: [3, 2],
        stride: [2, 1],
        padding: [1, 0],
        dilation: [1, 1],
    };
    let (nx, nw, ny) = (2 * 6 * 63, 4 * 3 * 6, 2 * 4 * 30);
    let (x, w, g) = (noise(nx, 1), noise(nw, 2), noise(ny, 3));
    let tx = put(gpu, &[2, 6, 9, 7], DType::F32, &x);
    let tw = put(gpu, &[4, 3, 3, 2], DType::F32, &w);
    let tg = put(gpu, &[2, 4, 5, 6], DType::F32, &g);
    let y = Scratch::new(gpu, &[2, 4, 5, 6], DType::F32).unwrap();
    let dx = Scratch::new(gpu, &[2, 6, 9, 7], DType::F32).unwrap();
    let dw = Scratch::new(gpu, &[4, 3, 3, 2], DType::F32).unwrap();
    conv::forward(gpu, &c, tx.view(), tw.view(), None, y.view()).unwrap();
    conv::backward_input(gpu, &c, tg.view(), tw.view(), None, dx.view()).unwrap();
    conv::backward_weight(gpu, &c, tx.view(), tg.view(), dw.view()).unwrap();
    let mut want = vec![];
    for (b, o, i, j) in (0..2)
        .flat_map(|b| (0..4).map(move |o| (b, o)))
        .flat_map(|(b, o)| (0..30).map(move |e| (b, o, e / 6, e % 6)))
    {
        let mut sum = 0.0;
        for ch in 0..3 {
            for (p, q) in (0..6).map(|e| (e / 2, e % 2)) {
                let (r, s) = ((2 * i + p) as isize - 1, j + q);
                if (0..9).contains(&r) {
                    let at = ((b * 6 + o / 2 * 3 + ch) * 9 + r as usize) * 7 + s;
                    sum += x[at] as f64 * w[((o * 3 + ch) * 3 + p) * 2 + q] as f64;
                }
            }
        }
        want.push(sum);
    }
    let got = get::<f32>(gpu, &y);
    close(&got, &want, 1e-5);
    let dot =
        |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(&a, &b)| a as f64 * b as f64).sum() };
    let both = dot(&got, &g);
    assert!((dot(&get(gpu, &dx), &x) - both).abs() < 1e-4 * both.abs().max(1.0));
    assert!((dot(&get(gpu, &dw), &w) - both).abs() < 1e-4 * both.abs().max(1.0));
}

#[test]
fn conv2d_weight_gradient_longer_than_the_loop_limit_is_right() {
    let Some((_turn, gpu)) = gpu() else { return };
    // 1 x 1 kernels: the gradient is the sum of products over 40,000 positions.
    let n = 200;
    let c = conv::Conv2d {
        batch: 1,
        in_channels: 1,
        out_channels: 1,
        groups: 1,
        input: [n, n],
        output: [n, n],
        kernel: [1, 1],
        stride: [1, 1],
        padding: [0, 0],
        dilation: [1, 1],
    };
    let (x, g) = (noise(n * n, 1), noise(n * n, 2));
    let shape = [1, 1, n, n];
    let (tx, tg) = (
        put(gpu, &shape, DType::F32, &x),
        put(gpu, &shape, DType::F32, &g),
    );
    let d = Scratch::new(gpu, &[1, 1, 1, 1], DType::F32).unwrap();
    conv::backward_weight(gpu, &c, tx.view(), tg.view(), d.view()).unwrap();
    let want: f64 = x.iter().zip(&g).map(|(&a, &b)| a as f64 * b as f64).sum();
    close(&get(gpu, &d), &[want], 1e-4);
}

#[test]
fn norm_batch_matches_the_host_in_half_precision() {
    let Some((_turn, gpu)) = gpu() else { return };
    let x: Vec<half::f16> = noise(60, 1).into_iter().map(half::f16::from_f32).collect();
    let tx = put(gpu, &[2, 3, 10], DType::F16, &x);
    let y = Scratch::new(gpu, &[2, 3, 10], DType::F16).unwrap();
    let stats: Vec<Scratch> = (0..3)
        .map(|_| Scratch::new(gpu, &[3], DType::F32).unwrap())
        .collect();
    let groups = norm::Groups::batch(2, 3, 10);
    let out = [stats[0].view(), stats[1].view(), stats[2].view()];
    norm::forward(gpu, &groups, 1e-5, tx.view(), None, None, y.view(), out).unwrap();
    let at = |b: usize, c: usize, i: usize| x[(b * 3 + c) * 10 + i].to_f64();
    let got: Vec<f32> = get::<half::f16>(gpu, &y)
        .iter()
        .map(|v| v.to_f32())
        .collect();
    let mut want = vec![0.0; 60];
    for c in 0..3 {
        let all: Vec<f64> = (0..20).map(|e| at(e / 10, c, e % 10)).collect();
        let mean = all.iter().sum::<f64>() / 20.0;
        let var = all.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 20.0;
        for e in 0..20 {
            want[(e / 10 * 3 + c) * 10 + e % 10] = (all[e] - mean) / (var + 1e-5).sqrt();
        }
    }
    close(&got, &want, 1e-3);
}

#[test]
fn max_pool2d_of_padded_planes_matches_the_host() {
    let Some((_turn, gpu)) = gpu() else { return };
    let x = noise(2 * 30, 5);
    let g = pool::Pool2d {
        input: [5, 6],
        output: [3, 3],
        kernel: [3, 3],
        stride: [2, 2],
        padding: [1, 1],
        dilation: [1, 1],
    };
    let tx = put(gpu, &[2, 5, 6], DType::F32, &x);
    let y = Scratch::new(gpu, &[2, 3, 3], DType::F32).unwrap();
    let index = Scratch::new(gpu, &[2, 3, 3], DType::I64).unwrap();
    pool::max(gpu, &g, tx.view(), y.view(), index.view()).unwrap();
    let (y, index) = (get::<f32>(gpu, &y), get::<i64>(gpu, &index));
    for e in 0..18 {
        let (p, i, j) = (e / 9, e / 3 % 3, e % 3);
        let mut best = f32::MIN;
        for (r, s) in (0..9).map(|k| (2 * i + k / 3, 2 * j + k % 3)) {
            if (1..6).contains(&r) && (1..7).contains(&s) {
                best = best.max(x[p * 30 + (r - 1) * 6 + s - 1]);
            }
        }
        assert_eq!(y[e], best);
        assert_eq!(x[p * 30 + index[e] as usize], best);
    }
}

#[test]
fn dropout_and_bernoulli_of_one_stream_agree() {
    let Some((_turn, gpu)) = gpu() else { return };
    let s = random::Stream {
        key: [3, 4],
        stream: 5,
    };
    let n = 10_001;
    let x = put(gpu, &[n], DType::F32, &vec![2f32; n]);
    let y = Scratch::new(gpu, &[n], DType::F32).unwrap();
    let mask = Scratch::new(gpu, &[n], DType::Bool).unwrap();
    random::dropout(gpu, s, 0.75, 4.0, x.view(), y.view()).unwrap();
    random::bernoulli(gpu, s, 0.75, mask.view()).unwrap();
    let (y, mask) = (get::<f32>(gpu, &y), get::<u8>(gpu, &mask));
    assert!(y.iter().zip(&mask).all(|(&y, &m)| y == 8.0 * m as f32));
    let kept = mask.iter().filter(|&&m| m == 1).count();
    assert!((kept as f64 / n as f64 - 0.75).abs() < 0.02, "{kept}");
}
