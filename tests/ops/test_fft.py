"""Fourier transforms against NumPy's, and their gradients against differences."""

import numpy as np
import pytest

import pytensorlib as torch

ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
SEVERAL = ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"]
REAL = {"rfft", "ihfft", "rfft2", "rfftn", "ihfft2", "ihfftn"}
rng = np.random.default_rng(0)


def numbers(name, shape, dtype=np.float64):
    x = rng.normal(size=shape)
    if name not in REAL:
        x = x + 1j * rng.normal(size=shape)
    return x.astype(np.result_type(dtype, x.dtype) if dtype == np.float64 else x.dtype)


def close(got, want, rtol=1e-10):
    assert tuple(got.shape) == want.shape
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=rtol, atol=rtol * 10)


@pytest.mark.parametrize("norm", [None, "forward", "ortho", "backward"])
@pytest.mark.parametrize("name", ONE)
def test_along_a_dimension_as_numpy(name, norm):
    for shape, dim in (((7,), 0), ((12, 5), 0), ((3, 8, 11), 1), ((2, 30), -1), ((17, 1), 0)):
        x = numbers(name, shape)
        size = shape[dim]
        for n in (None, 1, size - 1 or 2, size + 4):
            if n is None and name in ("irfft", "hfft") and size == 1:
                continue
            want = getattr(np.fft, name)(x, n, dim, norm)
            close(getattr(torch.fft, name)(torch.tensor(x), n, dim, norm), want)


@pytest.mark.parametrize("norm", [None, "forward", "ortho"])
@pytest.mark.parametrize("name", SEVERAL)
def test_along_several_dimensions_as_numpy(name, norm):
    x = numbers(name, (4, 5, 6))
    f, g = getattr(torch.fft, name), getattr(np.fft, name)
    close(f(torch.tensor(x), norm=norm), g(x, norm=norm))
    for s, dim in (((3, 8), (0, 2)), ((7, 4), (-1, 1)), (None, (2, 0))):
        close(f(torch.tensor(x), s, dim, norm), g(x, s, dim, norm))
    if name.endswith("n"):
        close(f(torch.tensor(x), (3, 4)), g(x, (3, 4), (-2, -1)))
        close(f(torch.tensor(x), (-1, 4), (0, 1)), g(x, (4, 4), (0, 1)))


def test_hermitian_transforms_of_several_dimensions():
    x = numbers("hfft", (4, 5))
    whole = np.fft.fft(np.fft.hfft(x, axis=1), axis=0)  # of complex columns only its real part
    rows = np.fft.fft(x, axis=0)
    close(torch.fft.hfft2(torch.tensor(x)), np.fft.hfft(rows, axis=1))
    assert whole.shape == (4, 8)
    r = rng.normal(size=(4, 6))
    want = np.fft.ifft(np.fft.ihfft(r, axis=1), axis=0)
    close(torch.fft.ihfft2(torch.tensor(r)), want)
    close(torch.fft.ihfftn(torch.tensor(r)), want)
    close(torch.fft.hfftn(torch.fft.ihfftn(torch.tensor(r))), r)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "complex64"])
def test_types_of_results(dtype):
    x = torch.ones(3, 4).to(getattr(torch, dtype))
    double = dtype == "float64"
    complex_type = torch.complex128 if double else torch.complex64
    assert torch.fft.fft(x).dtype == torch.fft.fftn(x).dtype == complex_type
    assert torch.fft.irfft(x).dtype == (torch.float64 if double else torch.float32)
    close(torch.fft.fft(x), np.fft.fft(np.ones((3, 4))), 1e-6)


def test_any_layout_and_many_lines():
    x = rng.normal(size=(6, 40, 30)) + 1j * rng.normal(size=(6, 40, 30))
    t = torch.tensor(x)
    close(torch.fft.fft(t.permute(2, 0, 1), dim=0), np.fft.fft(x.transpose(2, 0, 1), axis=0))
    close(torch.fft.fft(t[:, ::3, 1:], dim=1), np.fft.fft(x[:, ::3, 1:], axis=1))
    close(torch.fft.fft(t[:, :1].expand(6, 5, 30)), np.fft.fft(np.repeat(x[:, :1], 5, 1)))
    assert torch.fft.fft(torch.zeros(0, 4)).shape == (0, 4)
    assert torch.fft.rfft(torch.zeros(3, 0), n=4).shape == (3, 3)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = torch.fft.fft(t, dim=1)
        torch.set_num_threads(2)
        assert torch.equal(torch.view_as_real(alone), torch.view_as_real(torch.fft.fft(t, dim=1)))
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("name", [*ONE, *SEVERAL, "hfft2", "ihfft2", "hfftn", "ihfftn"])
def test_gradients(name):
    f = getattr(torch.fft, name)
    x = torch.tensor(numbers(name, (3, 5)), requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: f(x, norm="ortho"), x)
    if name in ONE:
        assert torch.autograd.gradcheck(lambda x: f(x, 8, 0), x)
        assert torch.autograd.gradcheck(lambda x: f(x, 4), x)
        assert torch.autograd.gradgradcheck(lambda x: f(x, 4), x)
    if name not in REAL:
        real = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(f, real)


def test_names_of_the_graph():
    x = torch.randn(4, requires_grad=True)
    names = [f(x).grad_fn.name() for f in (torch.fft.fft, torch.fft.rfft, torch.fft.irfft)]
    assert names == ["FftR2CBackward0", "FftR2CBackward0", "FftC2RBackward0"]


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_shifts_and_frequencies_as_numpy(n):
    for d in (1.0, 0.1):
        close(torch.fft.fftfreq(n, d, dtype=torch.float64), np.fft.fftfreq(n, d))
        close(torch.fft.rfftfreq(n, d, dtype=torch.float64), np.fft.rfftfreq(n, d))
    x = rng.normal(size=(n, 3))
    for axes in (None, 0, 1, (0, 1)):
        close(torch.fft.fftshift(torch.tensor(x), axes), np.fft.fftshift(x, axes))
        close(torch.fft.ifftshift(torch.tensor(x), axes), np.fft.ifftshift(x, axes))
    assert torch.fft.fftfreq(n).dtype == torch.float32
    assert torch.fft.fftfreq(n, requires_grad=True).requires_grad
    out = torch.empty(0)
    assert torch.fft.rfftfreq(n, out=out) is out and len(out) == n // 2 + 1


def test_out():
    x = torch.randn(4, 6)
    for dtype in (torch.complex64, torch.complex128):
        out = torch.empty(4, 6, dtype=dtype)
        assert torch.fft.fft(x, out=out) is out
        close(out, np.fft.fft(x.double().numpy()), 1e-5)
    with pytest.raises(RuntimeError):
        torch.fft.fft(x, out=torch.empty(4, 6))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, z: torch.fft.fft(x, 0), RuntimeError, r"number of data points \(0\)"),
        (lambda x, z: torch.fft.fft(x, -2), RuntimeError, r"number of data points \(-2\)"),
        (lambda x, z: torch.fft.irfft(z[:, :1]), RuntimeError, r"number of data points \(0\)"),
        (lambda x, z: torch.fft.fft(x, dim=5), IndexError, "out of range"),
        (lambda x, z: torch.fft.fft(x.sum()), IndexError, "has no dimensions"),
        (lambda x, z: torch.fft.ifftn(x.sum(), dim=(0,)), IndexError, "has no dimensions"),
        (lambda x, z: torch.fft.ihfft2(x.sum(), dim=(0,)), IndexError, "has no dimensions"),
        (lambda x, z: torch.fft.fftshift(x.sum(), 0), IndexError, "has no dimensions"),
        (lambda x, z: torch.fft.fft(x, norm="a"), RuntimeError, 'normalization mode: "a"'),
        (lambda x, z: torch.fft.rfft(z), RuntimeError, "real input tensor"),
        (lambda x, z: torch.fft.fft(x.half()), RuntimeError, "Unsupported dtype Half"),
        (lambda x, z: torch.fft.fftn(x, (3, 4, 5)), RuntimeError, "only has 2 dimensions"),
        (lambda x, z: torch.fft.fftn(x, (3,), (0, 1)), RuntimeError, "same length"),
        (lambda x, z: torch.fft.fftn(x, dim=(0, 0)), RuntimeError, "unique"),
        (lambda x, z: torch.fft.rfftn(x, dim=()), RuntimeError, "at least one axis"),
        (lambda x, z: torch.fft.fft2(x[0]), IndexError, "out of range"),
        (lambda x, z: torch.fft.fftshift(x, (0, 3)), IndexError, "out of range"),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call(torch.ones(4, 6), torch.ones(4, 6, dtype=torch.complex64))


def frames_of(x, n_fft, hop, window):
    """Transforms of frames, by NumPy."""
    count = 1 + (x.shape[-1] - n_fft) // hop
    rows = np.stack([x[..., i * hop : i * hop + n_fft] for i in range(count)], -2)
    return np.swapaxes(np.fft.rfft(rows * window), -1, -2)


@pytest.mark.parametrize("length", [16, 10])
@pytest.mark.parametrize("normalized", [False, True])
def test_transforms_of_frames_and_back(length, normalized):
    x = rng.normal(size=(2, 101))
    t = torch.tensor(x, requires_grad=True)
    window = np.hanning(length + 2)[1:-1]
    left = (16 - length) // 2
    wide = np.pad(window, (left, 16 - length - left))
    given = {"window": torch.tensor(window), "win_length": length, "normalized": normalized}
    y = torch.stft(t, 16, 4, return_complex=True, **given)
    want = frames_of(np.pad(x, ((0, 0), (8, 8)), mode="reflect"), 16, 4, wide)
    close(y, want / (4 if normalized else 1))
    plain = torch.stft(t[0], 16, 5, center=False, return_complex=False)
    np.testing.assert_allclose(
        torch.view_as_complex(plain).detach().numpy(), frames_of(x[0], 16, 5, 1.0), atol=1e-9
    )
    close(torch.istft(y, 16, 4, length=101, **given), x)
    close(t[1].stft(16, 4, return_complex=True, **given).istft(16, 4, **given), x[1, :100])
    torch.istft(y, 16, 4, **given).square().sum().backward()
    np.testing.assert_allclose(t.grad[:, :100].numpy(), 2 * x[:, :100], atol=1e-8)


def test_complex_frames_and_back():
    x = torch.randn(40, dtype=torch.complex128)
    y = torch.stft(x, 8)
    assert y.shape == (8, 21)
    torch.testing.assert_close(torch.istft(y, 8, return_complex=True), x)


@pytest.mark.parametrize(("n", "length", "hop"), [(16, 16, 4), (16, 10, 4), (80, 80, 2)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_istft_of_a_complex_window_gives_the_signal_back(n, length, hop, dtype):
    rng = np.random.default_rng(n)
    window = torch.from_numpy(rng.normal(size=length) + 1j * rng.normal(size=length))
    x = torch.from_numpy(rng.normal(size=(2, 200))).to(dtype)
    y = torch.stft(x, n, hop, length, window, return_complex=True)
    back = torch.istft(y, n, hop, length, window, length=200, return_complex=True)
    torch.testing.assert_close(back, x.to(torch.complex128))


@pytest.mark.parametrize(("n", "hop"), [(16, 16), (16, 5), (16, 4), (10, 3), (8, 1), (80, 2)])
def test_frames_are_added_over_the_squares_of_windows(n, hop):
    rng = np.random.default_rng(n + hop)
    window = rng.uniform(0.5, 1.5, n)
    y = rng.standard_normal((2, n // 2 + 1, 6)) + 1j * rng.standard_normal((2, n // 2 + 1, 6))
    total, squares = np.zeros((2, n + 5 * hop)), np.zeros(n + 5 * hop)
    for t in range(6):
        total[:, t * hop : t * hop + n] += np.fft.irfft(y[..., t], n) * window
        squares[t * hop : t * hop + n] += window**2
    given = {"window": torch.from_numpy(window), "center": False}
    got = torch.istft(torch.from_numpy(y), n, hop, **given)
    np.testing.assert_allclose(got.numpy(), total / squares, atol=1e-12)


def test_frames_that_do_not_fit_are_refused():
    x = torch.ones(20)
    with pytest.raises(RuntimeError, match="return_complex parameter be given"):
        torch.stft(x, 8)
    with pytest.raises(RuntimeError, match="n_fft"):
        torch.stft(x, 64, center=False, return_complex=True)
    with pytest.raises(RuntimeError, match="window"):
        torch.stft(x, 8, window=torch.ones(5), return_complex=True)
    with pytest.raises(RuntimeError, match="complex"):
        torch.istft(x[None], 8)
    y = torch.stft(x, 8, return_complex=True)
    with pytest.raises(RuntimeError, match="overlap add"):
        torch.istft(y, 8, window=torch.zeros(8))


@pytest.mark.parametrize("n", [2, 4, 6, 16, 30, 64, 74, 96, 250, 1000, 1024, 999, 1021])
@pytest.mark.parametrize("name", ONE)
def test_error_of_float32_stays_that_of_one_rounding_per_level(name, n):
    x = numbers(name, (19, n if name not in ("irfft", "hfft") else n // 2 + 1))
    x = x.astype(np.complex64 if np.iscomplexobj(x) else np.float32)
    size = None if n % 2 == 0 else n
    for shape, dim in ((x, 1), (np.ascontiguousarray(x.T), 0)):
        want = getattr(np.fft, name)(shape.astype(np.result_type(x, np.float64)), size, dim)
        y = getattr(torch.fft, name)(torch.from_numpy(shape), size, dim).numpy()
        assert y.shape == want.shape
        error = np.sqrt(np.mean(np.abs(y - want) ** 2) / np.mean(np.abs(want) ** 2))
        assert error < 6e-8 * (2 + np.log2(n))


@pytest.mark.parametrize("dtype", ["single", "double"])
@pytest.mark.parametrize("name", ONE)
def test_powers_of_two_as_numpy_whole_cut_and_padded(name, dtype):
    kinds = {"single": (np.float32, np.complex64), "double": (np.float64, np.complex128)}[dtype]
    for n in (1 << bits for bits in range(5, 16)):
        wide = numbers(name, (3, n + 3))
        bound = (6e-8 if dtype == "single" else 3e-16) * (2 + np.log2(n))
        for length in (n, n // 2 + 1, n - 3, n + 3):
            x = wide[:, :length].astype(kinds[np.iscomplexobj(wide)])
            for norm in (None, "ortho"):
                want = getattr(np.fft, name)(x.astype(wide.dtype), n, norm=norm)
                y = getattr(torch.fft, name)(torch.from_numpy(x), n, norm=norm).numpy()
                error = np.sqrt(np.mean(np.abs(y - want) ** 2) / np.mean(np.abs(want) ** 2))
                assert error < bound, (n, length, norm)
            # In columns, each line as alone.
            columns = torch.from_numpy(np.ascontiguousarray(x.T))
            y = getattr(torch.fft, name)(columns, n, 0).numpy()
            rows = getattr(torch.fft, name)(torch.from_numpy(x), n).numpy()
            assert np.array_equal(y.T, rows)


@pytest.mark.parametrize("n", [1 << 16, 90_000, 196_608, 65_537, 2 * 65_537])
@pytest.mark.parametrize("name", ONE)
def test_long_lines_as_numpy_with_any_number_of_threads(name, n):
    wide = numbers(name, (2, n))
    threads = torch.get_num_threads()
    for dtype, bound in (("single", 6e-8 * (2 + np.log2(n))), ("double", 2e-15)):
        kinds = {"single": (np.float32, np.complex64), "double": (np.float64, np.complex128)}
        x = wide.astype(kinds[dtype][np.iscomplexobj(wide)])
        for size, shape in ((n, x[0]), (n, x), (n, x[:, : n // 2 + 1]), (n, x[0, : n - 7])):
            want = getattr(np.fft, name)(shape.astype(wide.dtype), size)
            found = []
            try:
                for count in (1, 2, 3):
                    torch.set_num_threads(count)
                    y = torch.from_numpy(np.ascontiguousarray(shape))
                    found.append(getattr(torch.fft, name)(y, size).numpy())
            finally:
                torch.set_num_threads(threads)
            error = np.sqrt(np.mean(np.abs(found[0] - want) ** 2) / np.mean(np.abs(want) ** 2))
            assert error < bound
            assert all(np.array_equal(found[0], y) for y in found[1:])


@pytest.mark.parametrize("name", ONE)
def test_line_that_is_not_finite_leaves_its_neighbours(name):
    x = numbers(name, (40, 16)).astype(np.float32 if name in REAL else np.complex64)
    t = torch.from_numpy(x)
    f = getattr(torch.fft, name)
    for dim in (1, 0):
        clean = f(t if dim else t.T.contiguous(), None, dim).numpy()
        bad = t.clone()
        bad[5, 3] = float("nan")
        y = f(bad if dim else bad.T.contiguous(), None, dim).numpy()
        clean, y = (clean, y) if dim else (clean.T, y.T)
        assert np.isnan(y[5]).any()
        kept = np.arange(40) != 5
        np.testing.assert_array_equal(y[kept], clean[kept])


@pytest.mark.parametrize("name", ONE)
def test_lines_of_an_empty_dimension_are_zeros(name):
    x = torch.zeros(3, 0, dtype=torch.float32 if name in REAL else torch.complex64)
    assert not getattr(torch.fft, name)(x, 6, 1).abs().any()


@pytest.mark.parametrize("name", ["fft", "ihfft", "irfft", "ifft"])
@pytest.mark.parametrize("n", [6, 7, 12])
def test_gradients_of_real_lines_cut_or_padded(name, n):
    x = torch.randn(3, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: getattr(torch.fft, name)(x, n, 1), x)
    assert torch.autograd.gradgradcheck(lambda x: getattr(torch.fft, name)(x, n, 1), x)


inf, nan = float("inf"), float("nan")


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "ihfft", "fft2", "ifftn"])
def test_one_value_is_its_own_transform_infinite_or_not(name: str) -> None:
    for value in (inf, -inf, 3.0):
        y = getattr(torch.fft, name)(torch.tensor([[value]]))
        assert (y.real.item(), y.imag.item()) == (value, 0)
