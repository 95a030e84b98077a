//! PyTorch's words for what a public function refuses, where they are its own and the engine, which
//! names no operator, raises the general ones.

use crate::dtype::DType;
use crate::error::{Fault, Kind};

/// A result that `out=` has another type for.
#[derive(Clone, Copy, Debug)]
pub struct WrongOut {
    /// Which result.
    pub place: usize,
    pub want: DType,
    pub got: DType,
}

/// What kernels are called in PyTorch, where they have another name than the node of the graph.
const KERNELS: &[(&str, &str)] = &[
    (
        "_upsample_nearest_exact1d",
        "compute_indices_weights_nearest",
    ),
    ("adaptive_avg_pool1d", "adaptive_avg_pool2d"),
    ("adaptive_avg_pool3d", "adaptive_avg_pool3d_cpu"),
    ("adaptive_max_pool1d", "adaptive_max_pool2d"),
    ("adaptive_max_pool3d", "adaptive_max_pool3d_cpu"),
    ("addcmul_cpu", "addcmul_cpu_out"),
    ("aminmax", "aminmax_cpu"),
    ("amax", "max_values_cpu"),
    ("amin", "min_values_cpu"),
    ("avg_pool1d", "avg_pool2d"),
    ("avg_pool3d", "avg_pool3d_out_frame"),
    ("binary_cross_entropy_cpu", "binary_cross_entropy"),
    ("binary_cross_entropy_with_logits_cpu", "log_sigmoid_cpu"),
    ("bitwise_left_shift_cpu", "lshift_cpu"),
    ("bitwise_right_shift_cpu", "rshift_cpu"),
    ("ceil_cpu", "ceil_vml_cpu"),
    ("celu_cpu", "elu_cpu"),
    ("clamp_max_cpu", "minimum_cpu"),
    ("clamp_min_cpu", "maximum_cpu"),
    ("conv1d", "slow_conv2d_cpu"),
    ("conv2d", "slow_conv2d_cpu"),
    ("conv3d", "slow_conv3d_cpu"),
    ("conv_transpose1d", "slow_conv_transpose2d_out_cpu"),
    ("conv_transpose2d", "slow_conv_transpose2d_out_cpu"),
    ("conv_transpose3d", "slow_conv_transpose3d_out_cpu"),
    (
        "cross_entropy_loss_out_frame",
        "log_softmax_lastdim_kernel_impl",
    ),
    ("cummax", "cummax_cpu"),
    ("cummin", "cummin_cpu"),
    ("digamma_cpu", "digamma"),
    ("erf_cpu", "erf_vml_cpu"),
    ("erfc_cpu", "erfc_vml_cpu"),
    ("erfinv_cpu", "erfinv_vml_cpu"),
    ("floor_cpu", "floor_vml_cpu"),
    ("floor_divide_cpu", "div_floor_cpu"),
    ("fractional_max_pool2d", "fractional_max_pool2d_out_frame"),
    ("fractional_max_pool3d", "fractional_max_pool3d_out_frame"),
    ("gelu_cpu", "GeluKernelImpl"),
    ("grid_sampler_2d_cpu", "grid_sampler_2d_cpu_kernel_impl"),
    ("grid_sampler_3d_cpu", "grid_sampler3d_cpu"),
    ("huber_loss_cpu", "huber_cpu"),
    ("i0_cpu", "i0_vml_cpu"),
    ("lerp_cpu", "lerp_kernel_scalar"),
    ("lgamma_cpu", "lgamma_vml_cpu"),
    ("max", "max_all"),
    ("max_pool1d", "max_pool1d_impl"),
    ("max_unpool2_d", "max_unpool2d"),
    ("max_unpool3_d", "max_unpool3d"),
    ("min", "min_all"),
    ("mse_loss_cpu", "mse_cpu"),
    (
        "multi_margin_loss_out_frame",
        "multi_margin_loss_cpu_kernel",
    ),
    (
        "multilabel_margin_loss_out_frame",
        "multilabel_margin_loss_forward_out_frame",
    ),
    ("polygamma_cpu", "trigamma"),
    ("pow_cpu", "pow"),
    ("prelu_kernel_cpu", "prelu_cpu"),
    ("round_cpu", "round_vml_cpu"),
    ("rrelu", "rrelu_with_noise_out_cpu"),
    ("smooth_l1_loss_cpu", "smooth_l1_cpu"),
    ("softshrink_cpu", "softshrink_check"),
    ("special_entr_cpu", "entr_cpu"),
    ("special_erfcx_cpu", "erfcx_cpu"),
    ("special_i0_e_cpu", "i0e_cpu"),
    ("special_i1_cpu", "i1_cpu"),
    ("special_i1_e_cpu", "i1e_cpu"),
    ("special_log_ndtr_cpu", "log_ndtr_cpu"),
    ("special_ndtr_cpu", "erf_vml_cpu"),
    ("special_ndtri_cpu", "ndtri_cpu"),
    ("special_xlog1_py_cpu", "xlog1py_cpu"),
    ("special_zeta_cpu", "zeta_cpu"),
    ("trunc_cpu", "trunc_vml_cpu"),
    ("upsample_bicubic2d", "compute_indices_weights_cubic"),
    ("upsample_bilinear2d", "upsample_bilinear2d_channels_last"),
    ("upsample_linear1d", "compute_indices_weights_linear"),
    ("upsample_nearest1d", "compute_indices_weights_nearest"),
    ("upsample_trilinear3d", "compute_indices_weights_linear"),
];

/// What PyTorch says of complex numbers instead of naming a kernel.
const COMPLEX: &[(&str, &str)] = &[
    ("ceil_cpu", "ceil is not supported for complex inputs"),
    ("clamp_cpu", "clamp is not supported for complex types"),
    (
        "cosine_embedding_loss_cpu",
        "clamp is not supported for complex types",
    ),
    ("floor_cpu", "floor is not supported for complex inputs"),
    ("hardtanh_cpu", "clamp is not supported for complex types"),
    ("relu_cpu", "clamp is not supported for complex types"),
    (
        "signbit_cpu",
        "signbit is not implemented for complex tensors.",
    ),
    ("trunc_cpu", "trunc is not supported for complex inputs"),
];

/// Puts the fault of a call of the public function `op` in PyTorch's words.
pub fn of_call(op: &str, fault: &mut Fault) {
    if let Some(wrong) = fault.wrong_out.take() {
        out_type(op, wrong, fault);
    }
    if matches!(fault.kind, Kind::NotImplemented | Kind::NoKernel) {
        kernel(op, fault);
    }
    // PyTorch says `linalg.inv: ..` of some functions and `torch.linalg.inv: ..` of others.
    if fault.text.starts_with("linalg.") {
        fault.text.insert_str(0, "torch.");
    }
}

/// Renames the kernel of `"add_cpu" not implemented for 'Bool'`.
fn kernel(op: &str, fault: &mut Fault) {
    let Some((name, rest)) = fault.text.strip_prefix('"').and_then(|t| t.split_once('"')) else {
        return;
    };
    let known = |table: &'static [(&str, &'static str)]| {
        let found = table.iter().find(|(ours, _)| *ours == name);
        found.map(|(_, theirs)| *theirs)
    };
    let complex = rest.contains("for 'Complex");
    if let (true, Some(text)) = (complex, known(COMPLEX)) {
        fault.text = text.into();
    } else if let Some(theirs) = known(KERNELS) {
        fault.text = format!("\"{theirs}\"{rest}");
    } else if name.starts_with("special_") && name.ends_with("_cpu") {
        // One formula of many functions.
        fault.text = format!("\"{}_cpu\"{rest}", op.trim_end_matches('_'));
    }
}

/// Says that a result has another type than `out=`.
fn out_type(op: &str, wrong: WrongOut, fault: &mut Fault) {
    let WrongOut { place, want, got } = wrong;
    let (w, g) = (want.scalar_name(), got.scalar_name());
    let (wc, gc) = (want.c_name(), got.c_name());
    let safely = |call: &str, result: &str| {
        format!("{call}: Expected {result} to be safely castable from {w} dtype, but got {result} with dtype {g}")
    };
    let named = |names: &[&'static str]| names.get(place).copied().unwrap_or("result");
    fault.text = match op {
        "cat" | "concat" | "concatenate" | "stack" | "hstack" | "vstack" | "dstack"
        | "column_stack" | "row_stack" => {
            fault.kind = Kind::Type;
            format!("torch.cat(): input types can't be cast to the desired output type {g}")
        }
        "cumsum" | "cumprod" if got == DType::Bool => {
            fault.kind = Kind::NotImplemented;
            format!("\"{op}_out_cpu\" not implemented for 'Bool'")
        }
        "nansum" | "nanmean" if got == DType::Bool => {
            fault.kind = Kind::NotImplemented;
            "\"nansum_cpu\" not implemented for 'Bool'".into()
        }
        "addbmm" => format!("self and mat2 must have the same dtype, but got {g} and {w}"),
        "dot" | "vdot" | "matmul" => format!("result dtype {g} does not match input dtype {w}"),
        "mv" | "addmv" => {
            format!("addmv input tensors must have the same dtype, but got {g}, {w}, and {w}")
        }
        "cholesky" | "cholesky_inverse" | "cholesky_solve" | "matrix_power" | "tensorinv"
        | "tensorsolve" => safely(op, "result"),
        "cond" | "pinv" => safely(&format!("linalg.{op}"), "result"),
        "householder_product" | "matrix_rank" => safely(&format!("torch.linalg.{op}"), "result"),
        "eig" | "eigvals" => safely(
            &format!("torch.linalg.{op}"),
            named(&["eigenvalues", "eigenvectors"]),
        ),
        "lstsq" => safely(
            "torch.linalg.lstsq",
            named(&["solution", "residuals", "rank", "singular_values"]),
        ),
        "geqrf" => safely("torch.geqrf", named(&["a", "tau"])),
        "complex" | "polar" => {
            format!("Expected object of scalar type {w} but got scalar type {g} for argument 'out'")
        }
        "cummax" | "cummin" | "diff" | "logcumsumexp" => {
            format!("expected scalar_type {w} but found {g}")
        }
        "log_sigmoid" | "logsigmoid" | "solve_triangular" | "native_batch_norm" => {
            format!("expected scalar type {w} but found {g}")
        }
        "diag" => format!("diag: result type {w} can't be cast to the desired out= type {g}"),
        "frexp" if place == 0 => {
            format!("torch.frexp() expects mantissa to have dtype {wc} but got {gc}")
        }
        "frexp" => format!("torch.frexp() expects exponent to have int dtype but got {gc}"),
        "kthvalue" if place == 0 => "output values must be of same type as input".into(),
        "kthvalue" => "output indices must be of scalar type Long".into(),
        "ldexp" => format!("ldexp can't be cast to the desired output type {g}"),
        "masked_select" | "index_select" => {
            format!("{op}(): self and result must have the same scalar type")
        }
        "quantile" | "nanquantile" => {
            "quantile() out tensor must be same dtype as the input tensor".into()
        }
        "heaviside" if got.is_complex() => {
            "heaviside is not yet implemented for complex tensors.".into()
        }
        "heaviside" => "heaviside is not yet implemented for tensors with different dtypes.".into(),
        "mode" => {
            let result = named(&["values", "indices"]);
            format!("expected scalar type '{w}' but got '{g}' for {result} output")
        }
        "ormqr" => format!(
            "torch.ormqr: Expected input and result to have the same dtype, but input has dtype{w} \
             and result has dtype {g}"
        ),
        "float_power" => format!(
            "the output given to float_power has dtype {g} but the operation's result requires \
             dtype {w}"
        ),
        "nan_to_num" => format!("nan_to_num: dtype of out: {g} should be same as input: {w}"),
        "take" => format!(
            "take(): self and out expected to have the same dtype, but got self.dtype = {w} and \
             out.dtype = {g}"
        ),
        "histc" | "histogram" if place == 0 => format!(
            "torch.histogram: input tensor and hist tensor should have the same dtype, but got \
             input {wc} and hist {gc}"
        ),
        "histogram" => format!(
            "torch.histogram: input tensor and bin_edges tensor should have the same dtype, but \
             got input {wc} and bin_edges {gc} for dimension 0"
        ),
        "bucketize" | "searchsorted" => format!(
            "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or \
             Long(int64) depending on whether out_int32 flag is True, but we got output tensor's \
             dtype {g} and out_int32 flag is {}",
            if want == DType::I32 { "True" } else { "False" }
        ),
        "logsumexp" => {
            format!("logsumexp(): Expected floating point type for result tensor, but got: {g}")
        }
        "inner" | "tensordot" | "_tensordot" => format!(
            "tensordot: Expected the output tensor to have dtype {w}, but got an output tensor \
             with dtype {g}"
        ),
        "nonzero" => {
            format!("nonzero: Expected out tensor to have scalar type Long but got scalar type{g}")
        }
        "norm" | "matrix_norm" => format!("linalg.{op} expected out tensor dtype {w} but got: {g}"),
        "all" | "any" => format!("{op} only supports bool tensor for result, got: {g}"),
        "amax" | "amin" => format!(
            "Expected the dtype for input and out to match, but got {w} for input's dtype and {g} \
             for out's dtype."
        ),
        "mean" if !got.is_float() && !got.is_complex() => {
            format!("result type {w} can't be cast to the desired output type {g}")
        }
        "fft" | "rfft" | "rfftn" | "ihfft" | "ihfftn" | "fftn" => {
            format!("{op} expects a complex output tensor, but got {g}")
        }
        "ifft" if !got.is_complex() => format!("ifft expects a complex output tensor, but got {g}"),
        "fft2" | "ifft2" | "ifftn" => format!("fftn expects a complex output tensor, but got {g}"),
        "rfft2" => format!("rfftn expects a complex output tensor, but got {g}"),
        "ihfft2" => format!("ihfftn expects a complex output tensor, but got {g}"),
        "hfft" | "hfftn" | "irfft" | "irfftn" => {
            format!("{op} expects a floating point output tensor, but got {g}")
        }
        "hfft2" => format!("hfftn expects a floating point output tensor, but got {g}"),
        "irfft2" => format!("irfftn expects a floating point output tensor, but got {g}"),
        "vecdot" => format!("linalg.vecdot: Expected out of dtype{w} but found {g}"),
        "multi_dot" => format!("multi_dot(): expected out tensor to have dtype {wc} but got {gc}"),
        "abs" | "bitwise_not" | "ceil" | "conj_physical" | "floor" | "frac" | "gelu"
        | "hardshrink" | "neg" | "negative" | "round" | "sgn" | "sign" | "softplus"
        | "softshrink" | "trunc" | "fix" => format!("Found dtype {g} but expected {w}"),
        _ => return,
    };
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::error::Error;
    use crate::words::WrongOut;

    fn told(op: &'static str, place: usize) -> String {
        let mut e = Error::runtime("general");
        e.wrong_out = Some(WrongOut {
            place,
            want: DType::F32,
            got: DType::I64,
        });
        e.of(op).to_string()
    }

    #[test]
    fn the_type_of_out_is_told_as_the_function_tells_it() {
        assert_eq!(
            told("mode", 0),
            "mode(): expected scalar type 'Float' but got 'Long' for values output"
        );
        assert_eq!(
            told("floor", 0),
            "floor(): Found dtype Long but expected Float"
        );
        assert_eq!(told("add", 0), "add(): general");
    }

    #[test]
    fn kernels_are_called_by_the_names_of_pytorch() {
        let refused = |text: &str, op: &'static str| {
            Error::new(crate::error::Kind::NotImplemented, text)
                .of(op)
                .text
                .clone()
        };
        let erf = refused("\"erf_cpu\" not implemented for 'ComplexFloat'", "erf");
        assert_eq!(erf, "\"erf_vml_cpu\" not implemented for 'ComplexFloat'");
        let ceil = refused("\"ceil_cpu\" not implemented for 'ComplexFloat'", "ceil");
        assert_eq!(ceil, "ceil is not supported for complex inputs");
        let add = refused("\"add_cpu\" not implemented for 'Bool'", "add");
        assert_eq!(add, "\"add_cpu\" not implemented for 'Bool'");
    }
}
