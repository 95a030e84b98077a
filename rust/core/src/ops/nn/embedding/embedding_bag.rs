//! Sums, means or maxima of bags of rows, from the arguments on.

use super::bags::{self, Bags};
use super::rows::Rows;
use crate::arg;
use crate::cpu::indices::Indices;
use crate::device::Device;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::schema::{Args, Signature, Value};
use crate::shape::Show;
use crate::tensor::Tensor;
use crate::{alloc, bail, ensure};

pub(super) fn embedding_bag<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (w, at, offsets) = (
        a.tensor(arg!(weight))?,
        a.tensor(arg!(indices))?,
        a.tensor(arg!(offsets))?,
    );
    let (scaled, mode) = (a.bool(arg!(scale_grad_by_freq))?, a.int(arg!(mode))?);
    let (each, last) = (
        a.opt_tensor(arg!(per_sample_weights)),
        a.bool(arg!(include_last_offset))?,
    );
    ensure!(
        w.dtype().is_float(),
        Runtime,
        "embedding_bag: expected 'weight' to have a floating point type, but got {}",
        crate::autograd::saved::type_name(w)
    );
    // Narrow integers are read as what they promote to beside the other ones.
    let numbers = at.dtype().promote(offsets.dtype());
    ensure!(
        matches!(numbers, DType::I64 | DType::I32),
        Runtime,
        "embedding_bag: expected 'indices' and 'offsets' of Long or Int, or to promote to one of \
         them, but got {} and {}",
        crate::autograd::saved::type_name(at),
        crate::autograd::saved::type_name(offsets)
    );
    ensure!(
        w.ndim() == 2 && at.ndim() == 1 && offsets.ndim() == 1,
        Runtime,
        "embedding_bag: expected weight of 2 dimensions, indices and offsets of 1, but got {}, {} \
         and {}",
        Show(w.shape()),
        Show(at.shape()),
        Show(offsets.shape())
    );
    ensure!(
        (0..=2).contains(&mode),
        Value,
        "embedding_bag: mode must be 0 (sum), 1 (mean) or 2 (max), got {mode}"
    );
    ensure!(
        each.is_none() || mode == 0,
        Runtime,
        "embedding_bag: per_sample_weights only supported with mode='sum'"
    );
    if let Some(e) = each {
        ensure!(
            e.shape() == at.shape() && e.dtype() == w.dtype(),
            Runtime,
            "expected per_sample_weights of shape {} and type {}, but got {} and {}: shape must be \
             the same as the input's, type the same as the weight's",
            Show(at.shape()),
            w.dtype(),
            Show(e.shape()),
            e.dtype()
        );
    }
    let rows = w.size(0) as i64;
    let padding = match a.opt_int(arg!(padding_idx)) {
        None => None,
        Some(p) => {
            ensure!(
                -rows <= p && p < rows,
                Runtime,
                "padding_idx must be within the number of embeddings, -{rows} through {}, but got \
                 {p}",
                rows - 1
            );
            Some(p.rem_euclid(rows))
        }
    };
    let (at, starts) = (integers(at)?, integers(offsets)?);
    let starts = Indices::of(&starts).own();
    // SAFETY: a contiguous i64 tensor; the numbers are checked again where they become addresses.
    let numbers = unsafe { at.slice::<i64>() };
    // The sign of each difference, which vectors have.
    if numbers
        .iter()
        .fold(0, |any, &i| any | i | (rows - 1).wrapping_sub(i))
        < 0
    {
        let outside = |i: i64| i as u64 >= rows as u64;
        let bad = numbers.iter().find(|&&i| outside(i)).unwrap_or(&rows);
        bail!(
            Runtime,
            "embedding_bag: Expected idx >= 0 && idx < num_embeddings, but found idx to be {bad} \
             with {rows} embeddings"
        );
    }
    let total = numbers.len() as i64;
    ensure!(
        starts.first().is_none_or(|&s| s == 0),
        Runtime,
        "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from \
         position 0. However, got {}",
        starts[0]
    );
    ensure!(
        starts.windows(2).all(|w| w[0] <= w[1]) && starts.last().is_none_or(|&s| s <= total),
        Runtime,
        "offsets[-1] can not be greater than input's length({total}), and offsets must not \
         decrease"
    );
    ensure!(
        !last || !starts.is_empty(),
        Runtime,
        "include_last_offset: number of offsets should be at least 1"
    );
    let bags = starts.len() - last as usize;
    // Which bag each number belongs to; those behind the last bag and of the padding row to none.
    let all_bags = Tensor::empty(&[numbers.len()], DType::I64, Device::Cpu)?;
    // SAFETY: a contiguous i64 tensor of this call's own.
    let bag_of_each = unsafe { all_bags.slice_mut::<i64>() };
    let mut sizes = alloc::full(0i64, bags);
    for (bag, &start) in starts.iter().enumerate() {
        let end = *starts.get(bag + 1).unwrap_or(&total);
        bag_of_each[start as usize..end as usize].fill(bag as i64);
        if let Some(size) = sizes.get_mut(bag) {
            *size = end - start;
        }
    }
    let long = |v: &[i64], shape: &[usize]| -> Result<Tensor> {
        Tensor::from_slice(v, shape, DType::I64)?.to_device(w.device())
    };
    let offset2bag = all_bags.to_device(w.device())?;
    let end = if last { starts[bags] } else { total };
    let whole = bags > 0 && end == total && padding.is_none_or(|row| !numbers.contains(&row));
    let (mut kept, mut bag_of) = (Vec::new(), Vec::new());
    if !whole {
        let stays = |i: &i64| *i < end && bags > 0 && padding != Some(numbers[*i as usize]);
        alloc::reserve(&mut kept, numbers.len());
        kept.extend((0..total).filter(stays));
        bag_of = alloc::gathered(kept.iter().map(|&i| bag_of_each[i as usize]));
        sizes.fill(0);
        bag_of.iter().for_each(|&bag| sizes[bag as usize] += 1);
    }
    let chosen: Vec<i64> = match whole {
        true => Vec::new(),
        false => alloc::gathered(kept.iter().map(|&i| numbers[i as usize])),
    };
    let bag_size = long(&sizes, &[bags])?;
    let width = w.size(1);
    if mode == 2 {
        let (chosen, bag_of) = match whole {
            true => (at.clone(), &*bag_of_each),
            false => (
                Tensor::from_slice(&chosen, &[kept.len()], DType::I64)?,
                &*bag_of,
            ),
        };
        let (best, y) = bag_max(w, Indices::of(&chosen), bag_of, bags)?;
        let best = long(&best, &[bags, width])?;
        return Ok(Value::Tuple(vec![y, offset2bag, bag_size, best]));
    }
    let (chosen, bag_of) = match whole {
        true => (at.to_device(w.device())?, offset2bag.clone()),
        false => (long(&chosen, &[kept.len()])?, long(&bag_of, &[kept.len()])?),
    };
    let op = Bags {
        count: bags,
        mean: mode == 1,
        scaled,
        sparse: a.bool(arg!(sparse))?,
        weighted: each.is_some(),
    };
    let y = match each {
        None => dispatch::call1(op, &[w, &chosen, &bag_of])?,
        Some(each) if whole => dispatch::call1(op, &[w, &chosen, &bag_of, each])?,
        Some(each) => {
            let kept = long(&kept, &[kept.len()])?;
            let each = dispatch::call1(op.rows(), &[&each.reshape(&[-1, 1])?, &kept])?;
            dispatch::call1(op, &[w, &chosen, &bag_of, &each.reshape(&[-1])?])?
        }
    };
    // Without maxima there are no rows of theirs: zeros for sums, the sizes for means.
    let best = match mode {
        0 => Tensor::zeros(&[bags], DType::I64, w.device())?,
        _ => bag_size.copy_dense()?,
    };
    Ok(Value::Tuple(vec![y, offset2bag, bag_size, best]))
}

/// The elements in host memory; on meta zeros, for no shape depends on them.
fn integers(t: &Tensor) -> Result<Tensor> {
    match t.has_data() {
        true => t.to_host()?.prepared(DType::I64),
        false => Tensor::zeros(t.shape(), DType::I64, Device::Cpu),
    }
}

/// The largest element of each column of each bag, and the row that it is from.
fn bag_max(
    w: &Tensor,
    numbers: Indices,
    bag_of: &[i64],
    bags: usize,
) -> Result<(Vec<i64>, Tensor)> {
    let (rows, width) = (w.size(0), w.size(1));
    let mut best = match w.has_data() {
        true => bags::largest(&w.to_host()?, numbers, bag_of, bags)?,
        false => alloc::full(-1i64, bags * width),
    };
    let mut flat = w.reshape(&[-1])?;
    // Empty bags read one zero behind the table.
    if best.iter().any(|&row| row < 0) {
        flat = flat.pad_constant(&[0, 1], crate::dtype::Scalar::Int(0))?;
    }
    let places = best.iter().enumerate().map(|(i, &row)| match row < 0 {
        true => (rows * width) as i64,
        false => row * width as i64 + (i % width) as i64,
    });
    let at: Vec<i64> = alloc::gathered(places);
    let at = Tensor::from_slice(&at, &[bags * width], DType::I64)?.to_device(w.device())?;
    let name = "EmbeddingBagBackward0";
    let y = dispatch::call1(
        Rows {
            name,
            padding: None,
            scaled: false,
            sparse: false,
        },
        &[&flat.reshape(&[-1, 1])?, &at],
    )?;
    best.iter_mut().for_each(|b| *b = (*b).max(0));
    Ok((best, y.reshape_to(&[bags, width])?))
}
