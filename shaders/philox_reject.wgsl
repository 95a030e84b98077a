// Numbers of distributions that are drawn until one is accepted, behind philox_floats.wgsl. An element has
// its own counters: block `n` of element `position`, from 1 on. Logarithms of probabilities are
// Loader's (2000), whose terms do not cancel.
fn draw_two(n: ptr<function, u32>) -> vec2<Acc> {
    *n += 1u;
    let b = philox_of(position, *n);
    if (wide(ACC) == 1u) { return vec2(philox_long(b.x, b.y), philox_long(b.z, b.w)); }
    return vec2(Acc(b.x >> 8u), Acc(b.y >> 8u)) * Acc(5.9604644775390625e-8);
}
// What Stirling's formula leaves of log(n!).
fn draw_stirling(n: Acc) -> Acc {
    if (n < Acc(10)) {
        var known = array<Acc, 9>(
            Acc(0.0810614667953272), Acc(0.0413406959554092), Acc(0.0276779256849983),
            Acc(0.02079067210376509), Acc(0.0166446911898211), Acc(0.0138761288230707),
            Acc(0.0118967099458917), Acc(0.0104112652619720), Acc(0.00925546218271273),
        );
        return known[clamp(i32(n), 1, 9) - 1];
    }
    let s = n * n;
    return (Acc(0.08333333333333333) - (Acc(0.002777777777777778) - Acc(0.0007936507936507937) / s) / s) / n;
}
// k log(k / m) + m - k.
fn draw_deviance(k: Acc, m: Acc) -> Acc {
    let d = k - m;
    if (m_abs(d) >= Acc(0.1) * (k + m)) { return k * m_ln(k / m) - d; }
    let v = d / (k + m);
    var sum = d * v;
    var term = Acc(2) * k * v;
    for (var j = 1; j < 10; j++) {
        term *= v * v;
        sum += term / Acc(2 * j + 1);
    }
    return sum;
}
fn draw_root(x: Acc) -> Acc {
    return Acc(0.5) * m_ln(Acc(6.283185307179586) * x);
}

fn draw_poisson_log(k: Acc, rate: Acc) -> Acc {
    if (k == Acc(0)) { return -rate; }
    return -draw_stirling(k) - draw_deviance(k, rate) - draw_root(k);
}
// Below 10 as many as factors of a product stay above a bound, else Hormann's PTRS (1993).
fn draw_poisson(rate: Acc) -> Acc {
    if (!less(Acc(0), rate) || m_is_inf(rate)) { return rate; }
    var n = 0u;
    if (rate < Acc(10)) {
        let bound = m_exp(-rate);
        var product = Acc(1);
        for (var k = 0; k < 1000; k++) {
            product *= draw_two(&n).x;
            if (product <= bound) { return Acc(k); }
        }
    }
    let b = Acc(0.931) + Acc(2.53) * m_sqrt(rate);
    let a = Acc(-0.059) + Acc(0.02483) * b;
    let inverse = Acc(1.1239) + Acc(1.1328) / (b - Acc(3.4));
    let quick = Acc(0.9277) - Acc(3.6224) / (b - Acc(2));
    for (var i = 0; i < 1000; i++) {
        let two = draw_two(&n);
        let u = two.x - Acc(0.5);
        let s = Acc(0.5) - m_abs(u);
        if (s <= Acc(0)) { continue; }
        let k = m_floor((Acc(2) * a / s + b) * u + rate + Acc(0.43));
        if (s >= Acc(0.07) && two.y <= quick) { return k; }
        if (k < Acc(0) || (s < Acc(0.013) && two.y > s)) { continue; }
        if (m_ln(two.y * inverse / (a / (s * s) + b)) <= draw_poisson_log(k, rate)) { return k; }
    }
    return m_floor(rate);
}

fn draw_binomial_log(k: Acc, count: Acc, p: Acc) -> Acc {
    if (k == Acc(0)) { return count * m_log1p(-p); }
    if (k == count) { return count * m_ln(p); }
    let mean = count * p;
    let rest = count - k;
    return draw_stirling(count) - draw_stirling(k) - draw_stirling(rest) - draw_deviance(k, mean)
        - draw_deviance(rest, count - mean) + draw_root(count) - draw_root(k) - draw_root(rest);
}
// The trials up to each success where there are few, else Hormann's BTRS (1993). Of at most 1/2.
fn draw_successes(count: Acc, p: Acc) -> Acc {
    var n = 0u;
    if (count * p < Acc(10)) {
        let failure = m_log1p(-p);
        var trials = Acc(0);
        for (var k = 0; k < 1000; k++) {
            trials += m_max(Acc(1), m_ceil(m_log1p(-draw_two(&n).x) / failure));
            if (trials > count) { return Acc(k); }
        }
    }
    let root = m_sqrt(count * p * (Acc(1) - p));
    let b = Acc(1.15) + Acc(2.53) * root;
    let a = Acc(-0.0873) + Acc(0.0248) * b + Acc(0.01) * p;
    let quick = Acc(0.92) - Acc(4.2) / b;
    let alpha = (Acc(2.83) + Acc(5.1) / b) * root;
    let top = draw_binomial_log(m_floor((count + Acc(1)) * p), count, p);
    for (var i = 0; i < 1000; i++) {
        let two = draw_two(&n);
        let u = two.x - Acc(0.5);
        let s = Acc(0.5) - m_abs(u);
        if (s <= Acc(0)) { continue; }
        let k = m_floor((Acc(2) * a / s + b) * u + count * p + Acc(0.5));
        if (s >= Acc(0.07) && two.y <= quick) { return k; }
        if (k < Acc(0) || k > count) { continue; }
        if (m_ln(two.y * alpha / (a / (s * s) + b)) <= draw_binomial_log(k, count, p) - top) { return k; }
    }
    return m_floor(count * p);
}
fn draw_binomial(count: Acc, p: Acc) -> Acc {
    if (m_is_nan(count) || m_is_nan(p)) {
        // Of none there are none.
        return select(m_nan(), Acc(0), at_most(count, Acc(0)) | at_most(p, Acc(0)));
    }
    if (count <= Acc(0) || p <= Acc(0)) { return Acc(0); }
    if (p >= Acc(1) || m_is_inf(count)) { return count; }
    if (p <= Acc(0.5)) { return draw_successes(count, p); }
    return count - draw_successes(count, Acc(1) - p);
}

// log(1 + t) without its first three terms.
fn draw_log_rest(t: Acc) -> Acc {
    if (m_abs(t) > Acc(0.25)) { return m_log1p(t) - t * (Acc(1) - t * (Acc(0.5) - t / Acc(3))); }
    var sum = Acc(0);
    for (var j = 29; j > 3; j--) { sum = Acc(1) / Acc(j) - t * sum; }
    return -t * t * t * t * sum;
}
// A number, and the logarithm of a factor, by Marsaglia and Tsang (2000).
fn draw_gamma(shape: Acc) -> vec2<Acc> {
    if (m_is_nan(shape) || shape < Acc(0)) { return vec2(m_nan(), Acc(0)); }
    if (shape == Acc(0)) { return vec2(Acc(1), Acc(-1e30)); }
    if (m_is_inf(shape)) { return vec2(shape, Acc(0)); }
    var n = 0u;
    var a = shape;
    var scale = Acc(0);
    if (shape < Acc(1)) {
        scale = m_log1p(-draw_two(&n).x) / shape;
        a += Acc(1);
    }
    let d = a - Acc(0.3333333333333333);
    let c = Acc(1) / m_sqrt(Acc(9) * d);
    for (var i = 0; i < 1000; i++) {
        let normal = draw_two(&n);
        let x = m_sqrt(Acc(-2) * m_log1p(-normal.x)) * m_cos(Acc(6.283185307179586) * normal.y);
        let t = c * x;
        if (t <= Acc(-1)) { continue; }
        let u = Acc(1) - draw_two(&n).x;
        let square = x * x;
        if (u < Acc(1) - Acc(0.0331) * square * square || m_ln(u) < Acc(3) * d * draw_log_rest(t)) {
            let v = Acc(1) + t;
            return vec2(d * v * v * v, scale);
        }
    }
    return vec2(d, scale);
}
fn scaled_gamma(y: vec2<Acc>, low: Acc) -> Acc {
    if (y.y == Acc(0)) { return m_max(y.x, low); }
    return m_max(y.x * m_exp(y.y), low);
}
fn log_gamma(y: vec2<Acc>) -> Acc {
    return m_ln(y.x) + y.y;
}
