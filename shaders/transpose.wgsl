// y = x, the same bits, where rows of y run across those of x: squares of SIDE elements go through workgroup
// memory, so that both are moved in words of their own rows. An element is PARTS words, or a word is LANES
// elements.
override LANES: u32 = 1u;
override PARTS: u32 = 1u;
override SIDE: u32 = 32u;
override WHOLE: bool = true; // words of x lie in one row
override DIMS: u32 = 0u; // beside the two of the squares
override WG: u32 = WORKGROUP;

const BITS: u32 = 32u / LANES;
const MASK: u32 = 0xffffffffu >> (32u - BITS);
// Words of a row of a square, rows that the workgroup moves at a time, and how many times.
const ROW: u32 = SIDE * PARTS / LANES;
const ROWS: u32 = WG / ROW;
const TIMES: u32 = SIDE / ROWS;
// Of a row in workgroup memory, so that columns lie in different banks.
const PITCH: u32 = ROW + PARTS;

struct Params {
    // Elements along rows of x and along rows of y, and squares along the former and in one plane.
    across: u32,
    along: u32,
    columns: u32,
    squares: u32,
    count: u32, // of all squares
    x_offset: u32,
    y_offset: u32,
    // From one row to the next.
    x_pitch: u32,
    y_pitch: u32,
    pad0: u32,
    pad1: u32,
    pad2: u32,
    // The other dimensions, innermost first.
    size: array<vec4<u32>, 2>,
    x_step: array<vec4<u32>, 2>,
    y_step: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<u32>;

var<workgroup> square: array<u32, SIDE * PITCH>;

// Word w of row j. Rows whose elements share a word of y lie apart: neighbours read neighbouring rows.
fn place(j: u32, w: u32) -> u32 {
    return ((j % LANES) * (SIDE / LANES) + j / LANES) * PITCH + w;
}

// Word w of the row of x that begins at element e, of which `left` elements are to be read.
fn load(e: u32, w: u32, left: u32) -> u32 {
    if (LANES == 1u) { return x[e * PARTS + w]; }
    if (WHOLE) { return x[e / LANES + w]; }
    var v = 0u;
    for (var l = 0u; l < LANES; l++) { // unroll LANES
        let i = w * LANES + l;
        let at = e + min(i, left - 1u);
        v |= ((x[at / LANES] >> ((at % LANES) * BITS)) & MASK) << (l * BITS);
    }
    return v;
}

// Word w of row i of y.
fn turned(i: u32, w: u32) -> u32 {
    if (LANES == 1u) { return square[(w / PARTS) * PITCH + i * PARTS + w % PARTS]; }
    let shift = (i % LANES) * BITS;
    var v = 0u;
    for (var l = 0u; l < LANES; l++) { // unroll LANES
        let word = square[(l * (SIDE / LANES) + w) * PITCH + i / LANES];
        v |= ((word >> shift) & MASK) << (l * BITS);
    }
    return v;
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = group.x + group.y * groups.x;
    if (id >= p.count) { return; }
    let plane = id / p.squares;
    let here = id - plane * p.squares;
    let j0 = (here / p.columns) * SIDE;
    let i0 = (here % p.columns) * SIDE;
    var x_at = p.x_offset + i0 + j0 * p.x_pitch;
    var y_at = p.y_offset + j0 + i0 * p.y_pitch;
    var rest = plane;
    for (var d = 0u; d < DIMS; d++) {
        let q = rest / p.size[d / 4u][d % 4u];
        let c = rest - q * p.size[d / 4u][d % 4u];
        x_at += c * p.x_step[d / 4u][d % 4u];
        y_at += c * p.y_step[d / 4u][d % 4u];
        rest = q;
    }
    let r = local / ROW;
    let w = local % ROW;
    // The first element of word w in its row, and elements of rows of x and of y.
    let first = w * LANES / PARTS;
    let across = min(p.across - i0, SIDE);
    let along = min(p.along - j0, SIDE);
    let whole = across == SIDE && along == SIDE;
    if (whole) {
        var held: array<u32, TIMES>; // apart
        for (var k = 0u; k < TIMES; k++) { // unroll TIMES
            held[k] = load(x_at + (r + k * ROWS) * p.x_pitch, w, SIDE);
        }
        for (var k = 0u; k < TIMES; k++) { // unroll TIMES
            square[place(r + k * ROWS, w)] = held[k];
        }
    } else if (first < across) {
        for (var j = r; j < along; j += ROWS) {
            square[place(j, w)] = load(x_at + j * p.x_pitch, w, across);
        }
    }
    workgroupBarrier();
    if (whole) {
        for (var k = 0u; k < TIMES; k++) { // unroll TIMES
            let i = r + k * ROWS;
            y[(y_at + i * p.y_pitch) * PARTS / LANES + w] = turned(i, w);
        }
    } else if (first < along) {
        for (var i = r; i < across; i += ROWS) {
            y[(y_at + i * p.y_pitch) * PARTS / LANES + w] = turned(i, w);
        }
    }
}
