//! User-defined element-wise functions in WGSL.

use crate::autograd::Vjp;
use crate::dispatch;
use crate::error::Result;
use crate::gpu::{user_wgsl, Acc, Gpu, Shader};
use crate::meta::Meta;
use crate::op::{Cut, Derivative, Grads, Keep, Metas, Op, TensorMeta};
use crate::tensor::Tensor;
use crate::transfer::dense;
use crate::{bail, ensure};
use smallvec::smallvec;
use std::fmt::Write;
use std::sync::Arc;

/// How many inputs a body may have: a binding for each, for the result and for the parameters.
pub const MOST: usize = 6;

/// The element of each place by `fn op`, which the text defines, of those of the inputs there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Written {
    body: Arc<str>,
}

impl Written {
    /// The shader, after the convention of `shaders/README.md`.
    fn shader(&self, inputs: usize) -> String {
        let mut text = String::from("// uses store, math\noverride Y: u32 = F32;\n");
        let (mut loads, mut given) = (String::new(), String::new());
        for k in 0..inputs {
            let _ = writeln!(text, "override X{k}: u32 = F32;");
            let _ = write!(
                loads,
                "@group(0) @binding({}) var<storage, read> x{k}: array<u32>;\n\
                 fn load{k}(i: u32) -> Acc {{\n    let at = p.x{k} + i;\n    let w = word(X{k}, at);\n    \
                 return decode(X{k}, x{k}[w], x{k}[w + wide(X{k})], at);\n}}\n",
                k + 2
            );
            let comma = if k > 0 { ", " } else { "" };
            let _ = write!(given, "{comma}load{k}(id)");
        }
        let fields: String = (0..MOST).map(|k| format!(" x{k}: u32,")).collect();
        let body = &self.body;
        let _ = write!(
            text,
            "override WG: u32 = WORKGROUP;
struct Params {{ n: u32, y: u32,{fields} }}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
{loads}{body}
@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {{
    let id = (group.x + group.y * groups.x) * WG + local;
    if (id >= p.n) {{ return; }}
    store_y(p.y + id, op({given}));
}}
"
        );
        text
    }
}

impl Derivative for Written {
    fn name(&self) -> &'static str {
        "ElementwiseBackward0"
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        bail!(
            NotImplemented,
            "the derivative for 'wgpu.elementwise' is not implemented. library.custom_op gives \
             what is written in WGSL one."
        )
    }
}

impl Op for Written {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let first = TensorMeta::of(x[0]);
        ensure!(
            x.iter().all(|t| TensorMeta::of(t) == first),
            Runtime,
            "wgpu.elementwise: expected tensors of one shape, type and device"
        );
        Ok(smallvec![first])
    }

    fn cpu(&self, _x: &[&Tensor], _y: &[Tensor]) -> Result<()> {
        bail!(
            NotImplemented,
            "wgpu.elementwise: it runs on a GPU alone, in the types that it computes in"
        )
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        const FORMATS: [&str; MOST] = ["X0", "X1", "X2", "X3", "X4", "X5"];
        let (y, acc) = (&y[0], Acc::of(y[0].dtype())?);
        // What has gaps is read from copies.
        let x: Vec<Tensor> = x.iter().map(|t| dense(gpu, t)).collect::<Result<_>>()?;
        let mut p = [0; 2 + MOST];
        (p[0], p[1]) = (y.numel() as u32, y.offset() as u32);
        let shader = Shader::<[u32; 2 + MOST]>::untrusted("wgpu.elementwise", self.shader(x.len()));
        let mut launch = shader.launch(acc).writes("Y", y);
        for ((t, format), offset) in x.iter().zip(FORMATS).zip(&mut p[2..]) {
            *offset = t.offset() as u32;
            launch = launch.reads(format, t);
        }
        launch.threads(gpu, &p, y.numel())?;
        Ok(true)
    }

    fn cuts(&self, x: &[&Meta], _y: &[&Meta]) -> Vec<Cut> {
        Cut::along(0..x[0].ndim(), x.len(), 1)
    }
}

/// `fn op` of `body` for each element of tensors of one shape and type.
pub fn written(body: &str, x: &[&Tensor]) -> Result<Tensor> {
    user_wgsl::check_body("wgpu.elementwise", body)?;
    dispatch::call1(Written { body: body.into() }, x)
}
