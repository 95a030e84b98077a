// offsets[j] += wrapped(index[j]) * stride, one call for each index tensor of an indexing
// expression. A skipped index (padding_idx) gives 0xffffffff, which later kernels pass over.
// uses index, fault
override I: u32 = I64;
override FIRST: bool = true;
override WG: u32 = WORKGROUP;

struct Params {
    n: u32,
    i_offset: u32,
    size: u32,
    stride: u32,
    skip: u32,
    has_skip: u32,
    // Whether negative indices count from the end.
    wraps: u32,
    // The op and the dispatch, for the note of an index out of range.
    who: u32,
    dispatch: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> offsets: array<u32>;
@group(0) @binding(2) var<storage, read_write> fault: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read> index: array<u32>;

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    if (id >= p.n) { return; }
    var i = load_index(p.i_offset + id);
    var o = 0u;
    if (!FIRST) { o = offsets[id]; }
    if (p.has_skip == 1u && i == bitcast<i32>(p.skip)) {
        offsets[id] = SKIPPED;
        return;
    }
    let size = bitcast<i32>(p.size);
    let lowest = select(0, -size, p.wraps == 1u);
    if (i < lowest || i >= size) {
        complain(p.i_offset + id, p.size);
        i = 0;
    }
    if (i < 0) { i += size; }
    offsets[id] = o + u32(i) * p.stride;
}
