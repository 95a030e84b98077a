//! Views: other layouts over the same memory.

pub(crate) mod asked;
pub mod complex;
pub mod copies;
pub mod entries;
pub mod parts;
pub mod strided;

pub use entries::ENTRIES;

use crate::autograd::{inplace, mode, Edge, Node, Vjp};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::{Asked, Derivative, Grads, TensorMeta};
use crate::shape::{self, Dims, Show};
use crate::shared::Shared;
use crate::tensor::{Creation, Tensor, ViewOf};
use crate::{bail, ensure};
use parts::assemble;
use smallvec::SmallVec;
use std::sync::Arc;

fn grads(g: Tensor) -> Result<Grads> {
    Ok(SmallVec::from_elem(Some(g), 1))
}

/// The same elements in the same order under another shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    pub name: &'static str,
}

impl Derivative for View {
    fn name(&self) -> &'static str {
        self.name
    }
    fn asked(&self, x: &[&Tensor], y: &[Layout]) -> Result<Asked> {
        Ok(asked::viewed(Asked::of_node(self.name), x[0], &y[0]))
    }
    fn view_of_many(&self, _x: &Layout, _size: usize, _step: isize) -> Option<Arc<dyn Derivative>> {
        Some(Arc::new(self.clone()))
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let shape: SmallVec<[i64; 5]> = cx.input_meta(0)?.shape.iter().map(|&d| d as i64).collect();
        grads(g.reshape(&shape)?)
    }
}

/// The same tensor with neither history nor tangent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Detach;

impl Derivative for Detach {
    fn name(&self) -> &'static str {
        "DetachBackward0"
    }
    fn asked(&self, x: &[&Tensor], y: &[Layout]) -> Result<Asked> {
        Ok(asked::viewed(Asked::of_node(self.name()), x[0], &y[0]))
    }
    fn view_of_many(&self, _x: &Layout, _size: usize, _step: isize) -> Option<Arc<dyn Derivative>> {
        Some(Arc::new(self.clone()))
    }
    fn severs(&self) -> bool {
        true
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        Ok(Grads::from_elem(None, 1))
    }
}

/// Broadcast by stride 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expand;

impl Derivative for Expand {
    fn name(&self) -> &'static str {
        "ExpandBackward0"
    }
    fn asked(&self, x: &[&Tensor], y: &[Layout]) -> Result<Asked> {
        let args = [x[0].clone().into(), y[0].shape[..].into()];
        Ok(Asked::named("expand").with(args))
    }
    fn view_of_many(&self, x: &Layout, _size: usize, _step: isize) -> Option<Arc<dyn Derivative>> {
        // More dimensions would be put before that of the slices.
        Some(Arc::new(ExpandMany { ndim: x.ndim() }))
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        grads(g.sum_to(&cx.input_meta(0)?.shape)?)
    }
}

/// [`Expand`] of each slice, which has so many dimensions: those that it gets come behind the slices'.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ExpandMany {
    ndim: usize,
}

impl Derivative for ExpandMany {
    fn name(&self) -> &'static str {
        "ExpandBackward0"
    }
    fn view_of_many(&self, _x: &Layout, _size: usize, _step: isize) -> Option<Arc<dyn Derivative>> {
        Some(Arc::new(self.clone()))
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let to = &cx.input_meta(0)?.shape;
        let lead = to.len() - self.ndim;
        let ones = g.ndim() - to.len();
        let mut wide = Dims::from_slice(&to[..lead]);
        wide.extend(std::iter::repeat_n(1, ones));
        wide.extend(to[lead..].iter().copied());
        grads(g.sum_to(&wide)?.reshape(&shape::signed(to))?)
    }
}

/// Dimensions in another order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Permute {
    pub dims: SmallVec<[i64; 5]>,
    pub name: &'static str,
}

impl Derivative for Permute {
    fn name(&self) -> &'static str {
        self.name
    }
    fn asked(&self, x: &[&Tensor], _y: &[Layout]) -> Result<Asked> {
        Ok(asked::permuted(Asked::of_node(self.name), x[0], &self.dims))
    }
    fn view_of_many(&self, x: &Layout, _size: usize, _step: isize) -> Option<Arc<dyn Derivative>> {
        let n = x.ndim() as i64;
        let rest = self.dims.iter().map(|d| d.rem_euclid(n) + 1);
        let dims = std::iter::once(0).chain(rest).collect();
        let name = self.name;
        Some(Arc::new(Permute { dims, name }))
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let n = self.dims.len() as i64;
        let mut inverse: SmallVec<[i64; 5]> = SmallVec::from_elem(0, self.dims.len());
        for (i, &d) in self.dims.iter().enumerate() {
            inverse[d.rem_euclid(n) as usize] = i as i64;
        }
        grads(g.permute(&inverse)?)
    }
}

/// A part of the input: the gradient is zero elsewhere. `part` is relative to a contiguous tensor
/// of the input's shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    pub name: &'static str,
    pub part: Layout,
}

impl Derivative for Part {
    fn name(&self) -> &'static str {
        self.name
    }
    fn asked(&self, x: &[&Tensor], y: &[Layout]) -> Result<Asked> {
        Ok(asked::part(Asked::of_node(self.name), x[0], &y[0]))
    }
    fn view_of_many(&self, x: &Layout, size: usize, _step: isize) -> Option<Arc<dyn Derivative>> {
        Some(Arc::new(Part {
            name: self.name,
            part: self.part.of_many(size, x.numel() as isize),
        }))
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let m = cx.input_meta(0)?;
        if self.part.overlaps_itself() {
            let base = Layout::contiguous(&m.shape);
            return grads(strided::strided_adjoint(g, &self.part, &base)?);
        }
        grads(assemble(&m.shape, std::slice::from_ref(&self.part), &[g])?)
    }
}

/// An arbitrary layout over the input's storage. Layouts are relative to the storage.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AsStrided {
    pub base: Layout,
    pub view: Layout,
}

impl Derivative for AsStrided {
    fn name(&self) -> &'static str {
        "AsStridedBackward0"
    }
    fn asked(&self, x: &[&Tensor], y: &[Layout]) -> Result<Asked> {
        Ok(asked::strided(x[0], &y[0]))
    }
    fn view_of_many(&self, _x: &Layout, size: usize, step: isize) -> Option<Arc<dyn Derivative>> {
        Some(Arc::new(AsStrided {
            base: self.base.of_many(size, step),
            view: self.view.of_many(size, step),
        }))
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        grads(strided::strided_adjoint(g, &self.view, &self.base)?)
    }
}

/// The layout and derivative of a transposition.
fn swapped(x: &Tensor, a: i64, b: i64, name: &'static str) -> Result<(Permute, Layout)> {
    let layout = x.layout().transpose(a, b)?;
    let mut dims: SmallVec<[i64; 5]> = (0..x.ndim() as i64).collect();
    if x.ndim() > 0 {
        dims.swap(shape::dim(a, x.ndim())?, shape::dim(b, x.ndim())?);
    }
    Ok((Permute { dims, name }, layout))
}

/// The layout and derivative of `t`.
fn transposed(x: &Tensor) -> Result<(Permute, Layout)> {
    ensure!(
        x.ndim() <= 2,
        Runtime,
        "t() expects a tensor with <= 2 dimensions, but self is {}D",
        x.ndim()
    );
    if x.ndim() == 2 {
        return swapped(x, 0, 1, "TBackward0");
    }
    let dims = (0..x.ndim() as i64).collect();
    Ok((
        Permute {
            dims,
            name: "TBackward0",
        },
        x.layout().clone(),
    ))
}

/// The layout and derivative of `squeeze`.
fn squeezed(x: &Tensor, dims: Option<&[i64]>, name: &'static str) -> Result<(View, Layout)> {
    Ok((View { name }, x.layout().squeeze(dims)?))
}

impl Tensor {
    /// `permute`.
    pub fn permute(&self, dims: &[i64]) -> Result<Tensor> {
        let layout = self.layout().permute(dims)?;
        if self.is_sparse() {
            return self.permute_sparse(&shape::dims(dims, self.ndim())?);
        }
        dispatch::view(
            Permute {
                dims: dims.into(),
                name: "PermuteBackward0",
            },
            self,
            layout,
        )
    }

    /// `transpose`.
    pub fn transpose(&self, a: i64, b: i64) -> Result<Tensor> {
        if self.is_sparse() {
            return self.transpose_sparse(a, b);
        }
        let (op, layout) = swapped(self, a, b, "TransposeBackward0")?;
        dispatch::view(op, self, layout)
    }

    /// `detach`, seen by interpreters.
    pub fn detached(&self) -> Result<Tensor> {
        if !mode::interpreted() || self.is_sparse() {
            return Ok(self.detach());
        }
        let layout = self.layout().clone();
        let y = mode::with_grad(false, || dispatch::view(Detach, self, layout))?;
        Ok(match y.answers() || y.stands() {
            true => y,
            false => y.detach(),
        })
    }

    /// `t`: a matrix transposed, a vector as it is.
    pub fn t(&self) -> Result<Tensor> {
        if self.is_sparse() {
            return self.t_sparse();
        }
        let (op, layout) = transposed(self)?;
        dispatch::view(op, self, layout)
    }

    /// `movedim`.
    pub fn movedim(&self, from: &[i64], to: &[i64]) -> Result<Tensor> {
        ensure!(
            from.len() == to.len(),
            Runtime,
            "movedim: Invalid source or destination dims: source ({} dims) should contain the same \
             number of dims as destination ({} dims)",
            Show(from),
            Show(to)
        );
        let n = self.ndim();
        let read = |ds: &[i64], what: &str| -> Result<SmallVec<[usize; 5]>> {
            let mut out = SmallVec::new();
            for &d in ds {
                let d = shape::dim(d, n)?;
                ensure!(
                    !out.contains(&d),
                    Runtime,
                    "movedim: repeated dim in `{what}` ({})",
                    Show(ds)
                );
                out.push(d);
            }
            Ok(out)
        };
        let (from, to) = (read(from, "source")?, read(to, "destination")?);
        if n == 0 {
            return self.alias_view();
        }
        let mut rest = (0..n).filter(|d| !from.contains(d));
        let mut order: SmallVec<[i64; 5]> = SmallVec::new();
        for d in 0..n {
            let source = match to.iter().position(|&t| t == d) {
                Some(i) => from[i],
                None => rest.next().unwrap_or(0),
            };
            order.push(source as i64);
        }
        self.permute(&order)
    }

    /// `view`: fails where a copy would be needed.
    pub fn view(&self, size: &[i64]) -> Result<Tensor> {
        let layout = self.layout().view(size)?;
        dispatch::view(
            View {
                name: "ViewBackward0",
            },
            self,
            layout,
        )
    }

    /// `reshape`: a view where possible, else a copy.
    pub fn reshape(&self, size: &[i64]) -> Result<Tensor> {
        let shape = shape::infer(size, self.numel())?;
        match self.layout().reshape(&shape) {
            Some(layout) => dispatch::view(
                View {
                    name: "ViewBackward0",
                },
                self,
                layout,
            ),
            None => {
                let copy = self.copy_dense()?;
                let layout = Layout::contiguous(&shape);
                if copy.answers() || copy.stands() {
                    return dispatch::view(
                        View {
                            name: "ViewBackward0",
                        },
                        &copy,
                        layout,
                    );
                }
                // The copy is nobody else's: no view, so that in-place changes stay simple.
                let y = copy.alias(layout);
                dispatch::record(
                    View {
                        name: "UnsafeViewBackward0",
                    },
                    &[&copy],
                    std::slice::from_ref(&y),
                )?;
                Ok(y)
            }
        }
    }

    /// [`Tensor::reshape`] to sizes already known to fit.
    pub fn reshape_to(&self, shape: &[usize]) -> Result<Tensor> {
        let size: SmallVec<[i64; 5]> = shape.iter().map(|&d| d as i64).collect();
        self.reshape(&size)
    }

    /// `flatten`.
    pub fn flatten(&self, start: i64, end: i64) -> Result<Tensor> {
        let n = self.ndim();
        let (a, b) = (shape::dim(start, n)?, shape::dim(end, n)?);
        ensure!(
            a <= b,
            Runtime,
            "flatten() has invalid args: start_dim cannot come after end_dim"
        );
        if n == 0 {
            return self.reshape(&[1]);
        }
        if a == b {
            return Ok(self.clone());
        }
        let s = self.shape();
        let mut out = Dims::from_slice(&s[..a]);
        out.push(shape::numel(&s[a..=b])?);
        out.extend_from_slice(&s[b + 1..]);
        self.reshape_to(&out)
    }

    /// `unflatten`.
    pub fn unflatten(&self, dim: i64, sizes: &[i64]) -> Result<Tensor> {
        let d = shape::dim(dim, self.ndim())?;
        ensure!(
            !sizes.is_empty(),
            Runtime,
            "unflatten: sizes must be non-empty"
        );
        let n = self.size(d);
        let Ok(inner) = shape::infer(sizes, n) else {
            bail!(
                Runtime,
                "unflatten: Provided sizes {} don't multiply up to the size of dim {d} ({n}) in \
                 the input tensor",
                Show(sizes)
            )
        };
        let s = self.shape();
        let mut out = Dims::from_slice(&s[..d.min(s.len())]);
        out.extend_from_slice(&inner);
        out.extend_from_slice(s.get(d + 1..).unwrap_or(&[]));
        match self.layout().reshape(&out) {
            Some(layout) => dispatch::view(
                View {
                    name: "ViewBackward0",
                },
                self,
                layout,
            ),
            None => self.reshape_to(&out),
        }
    }

    /// `expand`.
    pub fn expand(&self, size: &[i64]) -> Result<Tensor> {
        let layout = self.layout().expand(size)?;
        dispatch::view(Expand, self, layout)
    }

    /// [`Tensor::expand`] to sizes.
    pub fn expand_to(&self, shape: &[usize]) -> Result<Tensor> {
        let size: SmallVec<[i64; 5]> = shape.iter().map(|&d| d as i64).collect();
        self.expand(&size)
    }

    /// `squeeze`: drops all dimensions of size 1, or those of `dims` that have it.
    pub fn squeeze(&self, dims: Option<&[i64]>) -> Result<Tensor> {
        let name = if dims.is_some() {
            "SqueezeBackward1"
        } else {
            "SqueezeBackward0"
        };
        let (op, layout) = squeezed(self, dims, name)?;
        dispatch::view(op, self, layout)
    }

    /// `unsqueeze`.
    pub fn unsqueeze(&self, dim: i64) -> Result<Tensor> {
        if self.is_sparse() {
            return self.unsqueeze_sparse(dim);
        }
        let layout = self.layout().unsqueeze(dim)?;
        dispatch::view(
            View {
                name: "UnsqueezeBackward0",
            },
            self,
            layout,
        )
    }

    /// Another tensor over the same elements (`alias`).
    pub fn alias_view(&self) -> Result<Tensor> {
        dispatch::view(
            View {
                name: "AliasBackward0",
            },
            self,
            self.layout().clone(),
        )
    }

    /// A part of this tensor, by a layout made from its own.
    pub fn part(
        &self,
        name: &'static str,
        f: impl Fn(&Layout) -> Result<Layout>,
    ) -> Result<Tensor> {
        let layout = f(self.layout())?;
        dispatch::view_with(self, layout, || {
            Ok(Part {
                name,
                part: f(&Layout::contiguous(self.shape()))?,
            })
        })
    }

    /// `select`.
    pub fn select(&self, dim: i64, index: i64) -> Result<Tensor> {
        if self.is_sparse() {
            return self.select_sparse(dim, index);
        }
        self.part("SelectBackward0", |l| l.select(dim, index))
    }

    /// `narrow`.
    pub fn narrow(&self, dim: i64, start: i64, length: i64) -> Result<Tensor> {
        self.part("SliceBackward0", |l| l.narrow(dim, start, length))
    }

    /// `slice` along a dimension.
    pub fn slice_dim(
        &self,
        dim: i64,
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    ) -> Result<Tensor> {
        self.part("SliceBackward0", |l| l.slice(dim, start, end, step))
    }

    /// `diagonal`.
    pub fn diagonal(&self, offset: i64, a: i64, b: i64) -> Result<Tensor> {
        self.part("DiagonalBackward0", |l| l.diagonal(offset, a, b))
    }

    /// `unfold` along a dimension (not the one of images).
    pub fn unfold_dim(&self, dim: i64, size: i64, step: i64) -> Result<Tensor> {
        self.part("UnfoldBackward0", |l| l.unfold(dim, size, step))
    }

    /// `as_strided`.
    pub fn as_strided(&self, size: &[i64], stride: &[i64], offset: Option<i64>) -> Result<Tensor> {
        let bytes = self.dtype().size();
        let capacity = self.capacity();
        let offset = offset.unwrap_or(self.offset() as i64);
        let view = Layout::as_strided(size, stride, offset, capacity, bytes)?;
        if self.stands() && view.numel() > 0 {
            let (own, all) = (view.reach(), self.layout().reach());
            ensure!(
                own.0 >= all.0 && own.1 <= all.1,
                Runtime,
                "result = tensor.as_strided({}, {}, {offset}) can access memory outside of `tensor`. \
                 `result` can access some memory in range [{}, {}], but `tensor` can only access \
                 some memory in range [{}, {}]. This is not supported inside of vmap, please try to \
                 rewrite the `as_strided` call as a sequence of PyTorch view operations",
                Show(size),
                Show(stride),
                own.0,
                own.1,
                all.0,
                all.1
            );
        }
        self.as_strided_view(view)
    }

    /// A recorded view under any layout of the same storage.
    pub fn as_strided_view(&self, view: Layout) -> Result<Tensor> {
        let op = AsStrided {
            base: self.layout().clone(),
            view: view.clone(),
        };
        dispatch::view(op, self, view)
    }

    /// The node that makes this view from its base, after the base's history changed.
    pub fn view_node(&self, base: &Layout, of: DType, edge: Edge) -> Result<Shared<Node>> {
        let (whole, meta) = (base.clone(), TensorMeta::of(self));
        let complex = [of.is_complex(), self.dtype().is_complex()];
        if complex[0] == complex[1] {
            let view = self.layout().clone();
            return Ok(dispatch::node(AsStrided { base: whole, view }, edge, meta));
        }
        let op = complex::Reinterpret {
            base: whole,
            region: match complex[0] {
                true => self.layout().clone(),
                false => self.layout().pairs(),
            },
            complex_base: complex[0],
        };
        Ok(dispatch::node(op, edge, meta))
    }

    /// What takes this tensor's place when its layout changes in place (`t_`): the same memory
    /// with the change recorded.
    pub fn relayout<D: Derivative + Clone>(&self, op: D, layout: Layout) -> Result<Tensor> {
        self.check_inplace(dispatch::needs(&[self]) != 0)?;
        if self.requires_grad() && self.is_plain_leaf() {
            // Recording is off: it stays the leaf that it is.
            self.bump_version();
            return Ok(self.replaced(&self.alias(layout)));
        }
        // The caller's handle and that of the host's object; others are views or saved values,
        // through which memory can change later.
        let alone = self.view_of().is_none() && self.handles() <= 2;
        let y = match alone {
            true => self.alias(layout),
            false => self.view_as(layout, self.dtype(), Creation::Default),
        };
        let fixed = |v: &ViewOf| v.creation() != Creation::Default;
        if !mode::grad() && self.view_of().is_some_and(fixed) {
            // Such a view gets no other node: whoever goes on with it is told so.
            if let Some(edge) = self.autograd().and_then(|m| m.state.lock().edge.clone()) {
                y.set_edge(edge);
            }
            self.bump_version();
            return Ok(y);
        }
        // The memory is what it was, so the node of a view, and the hooks on it, stay right.
        let right = !inplace::is_outdated(self);
        self.bump_version();
        if right {
            self.note_seen();
        }
        if self.requires_grad() {
            mode::with_grad(true, || {
                dispatch::record(op, &[self], std::slice::from_ref(&y))
            })?;
        }
        self.hand_grad_to(&y);
        Ok(y)
    }
}
