// How samples move with their parameters, in pointwise bodies: -(dF/da) / f of a distribution function F and
// its density f (Figurnov et al. 2018, arXiv:1805.08498), by PyTorch's approximations.
fn slope_three(x: Acc, a: Acc, b: Acc, c: Acc) -> Acc {
    return a + x * (b + x * c);
}
fn slope_four(x: Acc, a: Acc, b: Acc, c: Acc, d: Acc) -> Acc {
    return a + x * (b + x * (c + x * d));
}
fn slope_or_zero(x: Acc) -> Acc {
    if (m_is_nan(x)) { return Acc(0); }
    return x;
}
// 1 over the square root of the third power.
fn slope_distance(x: Acc) -> Acc {
    return Acc(1) / (x * m_sqrt(x));
}

// Of a gamma number x of shape a.
fn slope_gamma(a: Acc, x: Acc) -> Acc {
    if (x < Acc(0.8)) {
        // The terms of the incomplete gamma function's series, and their slopes by the shape.
        var term = Acc(1);
        var n = a;
        var sum = Acc(1) / n;
        var slopes = Acc(1) / (n * n);
        for (var i = 1; i < 6; i++) {
            term *= -x / Acc(i);
            n += Acc(1);
            sum += term / n;
            slopes += term / (n * n);
        }
        // The powers of x in front of both are those of the density, times x.
        let slope = (m_ln(x) - m_digamma(a)) * sum - slopes;
        return slope_or_zero(-slope * x * m_exp(x));
    }
    if (a > Acc(8)) {
        if (Acc(0.9) * a <= x && x <= Acc(1.1) * a) {
            // Where x = a the formula below is 0 / 0.
            let outer = Acc(1) + Acc(24) * a * (Acc(1) + Acc(12) * a);
            let inner = Acc(1440) * (a * a) + Acc(6) * x * (Acc(53) - Acc(120) * x)
                - Acc(65) * x * x / a + a * (Acc(107) + Acc(3600) * x);
            return outer / (a * a) * (inner / (a * a)) / Acc(1244160);
        }
        let root = m_sqrt(Acc(8) * a);
        let distance = slope_distance(x - a - a * m_ln(x / a));
        let both = root / (a - x) + select(distance, -distance, x < a);
        let bend = m_sqrt(Acc(2) / a) * (a + x) / ((a - x) * (a - x));
        let stirling = Acc(1) + Acc(1) / (Acc(12) * a) * (Acc(1) + Acc(1) / (Acc(24) * a));
        return -stirling * (x * (m_ln(x / a) * both - bend)) / root;
    }
    let u = m_ln(x / a);
    let v = m_ln(a);
    let above = slope_four(
        v,
        slope_three(u, Acc(0.16009398), Acc(0.53487893), Acc(0.040121004)),
        slope_three(u, Acc(-0.094634809), Acc(0.1298071), Acc(-0.0065914022)),
        slope_three(u, Acc(0.025146376), Acc(0.065735949), Acc(-0.0026286047)),
        slope_three(u, Acc(-0.0030648343), Acc(-0.0015649758), Acc(-0.0013441777)),
    );
    let below = slope_four(
        v,
        slope_three(u, Acc(1.0), Acc(0.16639465), Acc(0.017050642)),
        slope_three(u, Acc(0.32668115), Acc(0.020070113), Acc(-0.0021309326)),
        slope_three(u, Acc(0.10406089), Acc(-0.0035938915), Acc(0.00085092367)),
        slope_three(u, Acc(0.0014179084), Acc(-0.00058392623), Acc(-1.5247877e-07)),
    );
    return m_exp(above / below);
}

// By the first weight, where x is small.
fn slope_small(x: Acc, a: Acc, b: Acc) -> Acc {
    let factor = m_digamma(a) - m_digamma(a + b) - m_ln(x);
    var term = Acc(1);
    var sum = term / a * (factor + Acc(1) / a);
    for (var i = 1; i < 11; i++) {
        term *= (Acc(i) - b) * x / Acc(i);
        sum += term / (a + Acc(i)) * (factor + Acc(1) / (a + Acc(i)));
    }
    return slope_or_zero(x * m_exp(-b * m_log1p(-x)) * sum);
}
// By the second weight, where x is small.
fn slope_small_other(x: Acc, a: Acc, b: Acc) -> Acc {
    let factor = m_digamma(a + b) - m_digamma(b);
    var term = Acc(1);
    var product = Acc(1);
    var slope = Acc(0);
    var sum = factor / a;
    for (var i = 1; i < 9; i++) {
        term *= -x / Acc(i);
        slope = slope * (b - Acc(i)) + product;
        product *= b - Acc(i);
        sum += term / (a + Acc(i)) * (slope + factor * product);
    }
    return slope_or_zero(-m_exp((Acc(1) - b) * m_log1p(-x)) * sum);
}
fn slope_stirling(n: Acc) -> Acc {
    return Acc(1) + Acc(1) / (Acc(12) * n) + Acc(1) / (Acc(288) * n * n);
}
fn slope_large(x: Acc, a: Acc, b: Acc) -> Acc {
    let total = a + b;
    let mean = a / total;
    let deviation = m_sqrt(a * b / (total + Acc(1))) / total;
    if (mean - Acc(0.1) * deviation <= x && x <= mean + Acc(0.1) * deviation) {
        // Where x is the mean the formula below is 0 / 0. In shares, whose powers stay in range.
        let r = Acc(1) / total;
        let s = a * r;
        let q = b * r;
        let sum = slope_four(
            s,
            Acc(47) * x * r * (q * q) * (q * q),
            (Acc(43) * r + Acc(20) * (Acc(16) * r + Acc(27) * q) * x) * (q * q) * q,
            Acc(3) * (Acc(59) * r + Acc(180) * q - Acc(90) * x * r) * (q * q),
            (Acc(453) * r + Acc(1620) * q * (Acc(1) - x) - Acc(455) * x * r) * q
                + s * (Acc(8) * (Acc(1) - x) * (Acc(135) * q - Acc(11) * r)),
        );
        let outer = (r + Acc(12) * s) * (r + Acc(12) * q);
        let scale = Acc(12960) * (s * s * s) * (q * q) * (r + Acc(12)) * total;
        return outer / (Acc(1) - x) * (sum / scale);
    }
    let far = a * (x - Acc(1)) + b * x;
    let bend = (Acc(2) * (a * a) * (x - Acc(1)) + a * b * (x - Acc(1)) - x * (b * b))
        / (m_sqrt(Acc(2) * a / b) * total * m_sqrt(total) * far * far);
    let logs = m_ln(a / (total * x));
    let distance = slope_distance(b * m_ln(b / (total * (Acc(1) - x))) + a * logs);
    let side = select(-distance, distance, x < mean);
    let sum = bend + Acc(0.5) * logs * (m_sqrt(Acc(8) * a * b / total) / far + side);
    let outer = -x / m_sqrt(Acc(2) * a * b / total);
    return slope_stirling(a) * slope_stirling(b) / slope_stirling(total) * outer * sum;
}
fn slope_between(x: Acc, a: Acc, total: Acc) -> Acc {
    let u = m_ln(x);
    let v = m_ln(a) - u;
    let w = m_ln(total) - v;
    let above0 = slope_three(
        v,
        slope_four(w, Acc(1.003668233), Acc(-0.01061107488), Acc(-0.0657888334), Acc(0.01201642863)),
        slope_four(w, Acc(0.6336835991), Acc(-0.3557432599), Acc(0.05486251648), Acc(-0.001465281033)),
        slope_four(w, Acc(-0.03276231906), Acc(0.004474107445), Acc(0.002429354597), Acc(-0.0001557569013)),
    );
    let above1 = slope_three(
        v,
        slope_four(w, Acc(0.221950385), Acc(-0.3187676331), Acc(0.01799915743), Acc(0.01074823814)),
        slope_four(w, Acc(-0.2951249643), Acc(0.06219954479), Acc(0.01535556598), Acc(0.001550077057)),
        slope_four(w, Acc(0.02155310298), Acc(0.004170831599), Acc(0.001292462449), Acc(6.976601077e-05)),
    );
    let above2 = slope_three(
        v,
        slope_four(w, Acc(-0.05980841433), Acc(0.008441916499), Acc(0.01085618172), Acc(0.002319392565)),
        slope_four(w, Acc(0.02911413504), Acc(0.01400243777), Acc(-0.002721828457), Acc(0.000751041181)),
        slope_four(w, Acc(0.005900514878), Acc(-0.001936558688), Acc(-9.495446725e-06), Acc(5.385558597e-05)),
    );
    let below0 = slope_three(
        v,
        slope_four(w, Acc(1.0), Acc(-0.02924021934), Acc(-0.04438342661), Acc(0.007285809825)),
        slope_four(w, Acc(0.6357567472), Acc(-0.3473456711), Acc(0.05454656494), Acc(-0.002407477521)),
        slope_four(w, Acc(-0.03301322327), Acc(0.004845219414), Acc(0.00231480583), Acc(-0.0002307248149)),
    );
    let below1 = slope_three(
        v,
        slope_four(w, Acc(0.5925320577), Acc(-0.1757678135), Acc(0.01505928619), Acc(0.000564515273)),
        slope_four(w, Acc(0.1014815858), Acc(-0.06589186703), Acc(0.01272886114), Acc(-0.0007316646956)),
        slope_four(w, Acc(-0.007258481865), Acc(0.001096195486), Acc(0.0003934994223), Acc(-4.12701925e-05)),
    );
    let below2 = slope_three(
        v,
        slope_four(w, Acc(0.06469649321), Acc(-0.0236701437), Acc(0.002902096474), Acc(-5.896963079e-05)),
        slope_four(w, Acc(0.001925008108), Acc(-0.002869809258), Acc(0.0008000589141), Acc(-6.063713228e-05)),
        slope_four(w, Acc(-0.0003477407336), Acc(6.959756487e-05), Acc(1.097287507e-05), Acc(-1.650964693e-06)),
    );
    let simple = x * (m_digamma(total) - m_digamma(a)) / (total - a);
    return slope_three(u, above0, above1, above2) / slope_three(u, below0, below1, below2) * simple;
}
// Of a number x of a Dirichlet vector by its own weight a, over 1 - x; `total` is the sum of all weights.
fn slope_dirichlet(x: Acc, a: Acc, total: Acc) -> Acc {
    let b = total - a;
    let boundary = total * x * (Acc(1) - x);
    if (x <= Acc(0.5) && boundary < Acc(2.5)) { return slope_small(x, a, b); }
    if (x >= Acc(0.5) && boundary < Acc(0.75)) { return -slope_small_other(Acc(1) - x, b, a); }
    if (a > Acc(6) && b > Acc(6)) { return slope_large(x, a, b); }
    return slope_between(x, a, total);
}
