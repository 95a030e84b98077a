//! How samples move with their parameters: -(dF/da) / f of a distribution function F and its density
//! f, which is the gradient of a sample that keeps its rank (Figurnov et al. 2018,
//! arXiv:1805.08498). The approximations are PyTorch's, from series for small numbers, Rice's
//! saddle point for large parameters, and rational functions in between.

use crate::cpu::math::f64x::digamma;

fn polynomial(x: f64, coefficients: &[f64]) -> f64 {
    coefficients.iter().rev().fold(0.0, |y, c| y * x + c)
}

fn or_zero(x: f64) -> f64 {
    if x.is_nan() {
        0.0
    } else {
        x
    }
}

/// The gradient of a gamma number `x` of shape `a` by the shape.
pub fn gamma(a: f64, x: f64) -> f64 {
    if x < 0.8f32 as f64 {
        gamma_of_small(a, x)
    } else if a > 8.0 {
        gamma_of_large(a, x)
    } else {
        gamma_between(a, x)
    }
}

fn gamma_of_small(a: f64, x: f64) -> f64 {
    // The terms of the incomplete gamma function's series, and their slopes by the shape.
    let (mut term, mut n) = (1.0, a);
    let (mut sum, mut slopes) = (1.0 / n, 1.0 / (n * n));
    for i in 1..=5 {
        term *= -x / i as f64;
        n += 1.0;
        sum += term / n;
        slopes += term / (n * n);
    }
    let power = x.powf(a);
    let density = x.powf(a - 1.0) * (-x).exp();
    let slope = (x.ln() - digamma(a)) * (power * sum) - power * slopes;
    or_zero(-slope / density)
}

fn gamma_of_large(a: f64, x: f64) -> f64 {
    let near = 0.9f32 as f64 * a <= x && x <= 1.1f32 as f64 * a;
    if near {
        // Where x = a the formula below is 0 / 0.
        let outer = 1.0 + 24.0 * a * (1.0 + 12.0 * a);
        let inner = 1440.0 * (a * a) + 6.0 * x * (53.0 - 120.0 * x) - 65.0 * x * x / a
            + a * (107.0 + 3600.0 * x);
        return outer * inner / (1_244_160.0 * (a * a) * (a * a));
    }
    let root = (8.0 * a).sqrt();
    let distance = (x - a - a * (x / a).ln()).powf(-1.5);
    let both = root / (a - x) + if x < a { -distance } else { distance };
    let bend = (2.0 / a).sqrt() * (a + x) / ((a - x) * (a - x));
    let stirling = 1.0 + 1.0 / (12.0 * a) * (1.0 + 1.0 / (24.0 * a));
    -stirling * (x * ((x / a).ln() * both - bend)) / root
}

fn gamma_between(a: f64, x: f64) -> f64 {
    // Powers of log(a), each with a polynomial in log(x / a); four above and four below.
    const ABOVE: [[f64; 3]; 4] = [
        [0.16009398, 0.53487893, 0.040121004],
        [-0.094634809, 0.1298071, -0.0065914022],
        [0.025146376, 0.065735949, -0.0026286047],
        [-0.0030648343, -0.0015649758, -0.0013441777],
    ];
    const BELOW: [[f64; 3]; 4] = [
        [1.0, 0.16639465, 0.017050642],
        [0.32668115, 0.020070113, -0.0021309326],
        [0.10406089, -0.0035938915, 0.00085092367],
        [0.0014179084, -0.00058392623, -1.5247877e-07],
    ];
    let (u, v) = ((x / a).ln(), a.ln());
    let value = |c: [[f64; 3]; 4]| polynomial(v, &c.map(|row| polynomial(u, &row)));
    (value(ABOVE) / value(BELOW)).exp()
}

/// The gradient of a number `x` of a Dirichlet vector by its own weight `a`, over 1 - x; `total` is
/// the sum of all weights.
pub fn dirichlet(x: f64, a: f64, total: f64) -> f64 {
    let b = total - a;
    let boundary = total * x * (1.0 - x);
    if x <= 0.5 && boundary < 2.5 {
        beta_of_small(x, a, b)
    } else if x >= 0.5 && boundary < 0.75 {
        -beta_of_small_other(1.0 - x, b, a)
    } else if a > 6.0 && b > 6.0 {
        beta_of_large(x, a, b)
    } else {
        beta_between(x, a, total)
    }
}

/// By the first weight, where x is small.
fn beta_of_small(x: f64, a: f64, b: f64) -> f64 {
    let factor = digamma(a) - digamma(a + b) - x.ln();
    let mut term = 1.0;
    let mut sum = term / a * (factor + 1.0 / a);
    for i in 1..=10 {
        let i = i as f64;
        term *= (i - b) * x / i;
        sum += term / (a + i) * (factor + 1.0 / (a + i));
    }
    or_zero(x * (1.0 - x).powf(-b) * sum)
}

/// By the second weight, where x is small.
fn beta_of_small_other(x: f64, a: f64, b: f64) -> f64 {
    let factor = digamma(a + b) - digamma(b);
    let (mut term, mut product, mut slope) = (1.0, 1.0, 0.0);
    let mut sum = factor / a;
    for i in 1..=8 {
        let i = i as f64;
        term *= -x / i;
        slope = slope * (b - i) + product;
        product *= b - i;
        sum += term / (a + i) * (slope + factor * product);
    }
    or_zero(-(1.0 - x).powf(1.0 - b) * sum)
}

fn beta_of_large(x: f64, a: f64, b: f64) -> f64 {
    let total = a + b;
    let mean = a / total;
    let deviation = (a * b / (total + 1.0)).sqrt() / total;
    if mean - 0.1 * deviation <= x && x <= mean + 0.1 * deviation {
        // Where x is the mean the formula below is 0 / 0.
        let powers = [
            47.0 * x * (b * b) * (b * b),
            (43.0 + 20.0 * (16.0 + 27.0 * b) * x) * (b * b) * b,
            3.0 * (59.0 + 180.0 * b - 90.0 * x) * (b * b),
            (453.0 + 1620.0 * b * (1.0 - x) - 455.0 * x) * b,
            8.0 * (1.0 - x) * (135.0 * b - 11.0),
        ];
        let outer = (1.0 + 12.0 * a) * (1.0 + 12.0 * b) / (total * total);
        let scale = 12960.0 * a * a * a * b * b * (1.0 + 12.0 * total);
        return outer / (1.0 - x) * polynomial(a, &powers) / scale;
    }
    let stirling = |n: f64| 1.0 + 1.0 / (12.0 * n) + 1.0 / (288.0 * n * n);
    let far = a * (x - 1.0) + b * x;
    let bend = (2.0 * (a * a) * (x - 1.0) + a * b * (x - 1.0) - x * (b * b))
        / ((2.0 * a / b).sqrt() * total.powf(1.5) * far * far);
    let logs = (a / (total * x)).ln();
    let distance = (b * (b / (total * (1.0 - x))).ln() + a * logs).powf(-1.5);
    let side = if x < mean { distance } else { -distance };
    let sum = bend + 0.5 * logs * ((8.0 * a * b / total).sqrt() / far + side);
    let outer = -x / (2.0 * a * b / total).sqrt();
    stirling(a) * stirling(b) / stirling(total) * outer * sum
}

fn beta_between(x: f64, a: f64, total: f64) -> f64 {
    // Products of powers of log(x) and of log(a / x), each with a polynomial in what is left of
    // log(total).
    const ABOVE: [[[f64; 4]; 3]; 3] = [
        [
            [1.003668233, -0.01061107488, -0.0657888334, 0.01201642863],
            [0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033],
            [
                -0.03276231906,
                0.004474107445,
                0.002429354597,
                -0.0001557569013,
            ],
        ],
        [
            [0.221950385, -0.3187676331, 0.01799915743, 0.01074823814],
            [-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057],
            [
                0.02155310298,
                0.004170831599,
                0.001292462449,
                6.976601077e-05,
            ],
        ],
        [
            [
                -0.05980841433,
                0.008441916499,
                0.01085618172,
                0.002319392565,
            ],
            [
                0.02911413504,
                0.01400243777,
                -0.002721828457,
                0.000751041181,
            ],
            [
                0.005900514878,
                -0.001936558688,
                -9.495446725e-06,
                5.385558597e-05,
            ],
        ],
    ];
    const BELOW: [[[f64; 4]; 3]; 3] = [
        [
            [1.0, -0.02924021934, -0.04438342661, 0.007285809825],
            [0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521],
            [
                -0.03301322327,
                0.004845219414,
                0.00231480583,
                -0.0002307248149,
            ],
        ],
        [
            [0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273],
            [
                0.1014815858,
                -0.06589186703,
                0.01272886114,
                -0.0007316646956,
            ],
            [
                -0.007258481865,
                0.001096195486,
                0.0003934994223,
                -4.12701925e-05,
            ],
        ],
        [
            [
                0.06469649321,
                -0.0236701437,
                0.002902096474,
                -5.896963079e-05,
            ],
            [
                0.001925008108,
                -0.002869809258,
                0.0008000589141,
                -6.063713228e-05,
            ],
            [
                -0.0003477407336,
                6.959756487e-05,
                1.097287507e-05,
                -1.650964693e-06,
            ],
        ],
    ];
    let u = x.ln();
    let v = a.ln() - u;
    let w = total.ln() - v;
    let value = |c: [[[f64; 4]; 3]; 3]| {
        polynomial(
            u,
            &c.map(|rows| polynomial(v, &rows.map(|row| polynomial(w, &row)))),
        )
    };
    let simple = x * (digamma(total) - digamma(a)) / (total - a);
    value(ABOVE) / value(BELOW) * simple
}

#[cfg(test)]
mod tests {
    use super::*;

    // -(dF/da) / f by central differences of SciPy's gammainc and betainc, in float64.
    #[test]
    fn gradients_are_those_of_the_distribution_functions() {
        let near = |got: f64, want: f64| {
            assert!((got / want - 1.0).abs() < 5e-3, "{got} and not {want}");
        };
        for [a, x, want] in GAMMA {
            near(gamma(a, x), want);
        }
        for [x, a, total, want] in BETA {
            near(dirichlet(x, a, total), want);
        }
    }

    const GAMMA: [[f64; 3]; 6] = [
        [0.5, 0.3, 1.00980194591],
        [3.0, 0.7, 0.465835601246],
        [2.0, 1.5, 0.936639067881],
        [7.5, 4.0, 0.734285351596],
        [20.0, 20.5, 1.02087507257],
        [20.0, 12.0, 0.772590581351],
    ];
    const BETA: [[f64; 4]; 7] = [
        [0.1, 0.8, 3.0, 0.254269481145],
        [0.95, 4.0, 5.0, 0.243643148326],
        [0.5, 20.0, 40.0, 0.0254208020961],
        [0.3, 20.0, 50.0, 0.017513257322],
        [0.4, 2.0, 14.0, 0.128030609971],
        [0.7, 3.0, 9.0, 0.173941050229],
        [0.45, 10.0, 26.0, 0.0428281795172],
    ];
}
