//! Planes of pixels and windows of them, in which the channels of a block are next to each other.

use super::kernel::{Kernels, Pixels, Seen};
use crate::alloc::Scratch;

pub struct Image {
    kernels: &'static Kernels,
    size: [usize; 2],
    rows: usize,
    /// From one row of a window to the next, in pixels.
    pub pitch: usize,
    /// Where the pixels of whole rows go.
    places: Vec<u32>,
}

pub struct Window {
    pixels: Scratch<f32>,
    /// The columns on each side of which all pixels are zero.
    sides: Option<[usize; 2]>,
}

impl Window {
    pub fn ptr(&self) -> *mut f32 {
        self.pixels.ptr()
    }
}

/// Which of `n` coordinates from `first` on lie below `size`.
fn inside(first: isize, n: usize, size: usize) -> [usize; 2] {
    let lo = ((-first).max(0) as usize).min(n);
    let hi = ((size as isize - first).max(0) as usize).min(n);
    [lo, hi.max(lo)]
}

impl Image {
    /// Images of some size and windows of at most another.
    pub fn new(kernels: &'static Kernels, size: [usize; 2], window: [usize; 2]) -> Image {
        let [rows, pitch] = window;
        let place = |i: usize| (i / size[1] * pitch + i % size[1]) as u32;
        Image {
            kernels,
            size,
            rows,
            pitch,
            places: (0..rows.min(size[0]) * size[1]).map(place).collect(),
        }
    }

    pub fn window(&self) -> Window {
        Window {
            pixels: Scratch::new(self.rows * self.pitch * self.kernels.lanes),
            sides: None,
        }
    }

    /// Rows and columns of a plane that lie in a window, as runs.
    unsafe fn runs(
        &self,
        plane: *mut f32,
        plane_pitch: usize,
        channels: usize,
        window: &Window,
        at: [isize; 2],
        [y, x]: [[usize; 2]; 2],
    ) -> Pixels {
        // SAFETY: the runs lie inside the image, whose planes are `plane_pitch` apart, and inside
        // the window.
        unsafe {
            let (rows, columns) = (y[1] - y[0], x[1] - x[0]);
            let whole = columns == self.size[1];
            let (top, left) = (at[0] + y[0] as isize, at[1] + x[0] as isize);
            let lanes = self.kernels.lanes;
            Pixels {
                plane: plane.offset(top * self.size[1] as isize + left),
                plane_pitch,
                channels,
                runs: if whole { 1 } else { rows },
                n: if whole { rows * columns } else { columns },
                run_pitch: self.size[1],
                places: self.places.as_ptr(),
                window: window.ptr().add((y[0] * self.pitch + x[0]) * lanes),
                window_pitch: self.pitch * lanes,
            }
        }
    }

    /// Fills a window of `size` pixels whose first is `at`; those outside the image are zero.
    ///
    /// # Safety
    /// The channels' planes, `pitch` apart, have the image's size; the window is this image's.
    pub unsafe fn load(
        &self,
        plane: *const f32,
        pitch: usize,
        channels: usize,
        window: &mut Window,
        at: [isize; 2],
        size: [usize; 2],
    ) -> Seen {
        // SAFETY: rows and columns that `inside` gives lie in the image, and the others in the
        // window, which has `rows` rows of `pitch`.
        unsafe {
            let y = inside(at[0], size[0], self.size[0]);
            let x = inside(at[1], size[1], self.size[1]);
            let (lanes, to) = (self.kernels.lanes, window.ptr());
            let clear = |row: usize, from: usize, end: usize| {
                let at = to.add((row * self.pitch + from) * lanes);
                at.write_bytes(0, (end - from) * lanes);
            };
            if window.sides != Some(x) {
                for row in 0..self.rows {
                    clear(row, 0, x[0]);
                    clear(row, x[1], self.pitch);
                }
                window.sides = Some(x);
            }
            (0..y[0])
                .chain(y[1]..size[0])
                .for_each(|row| clear(row, x[0], x[1]));
            if y[0] == y[1] || x[0] == x[1] {
                return Seen::NOTHING;
            }
            let pixels = self.runs(plane as *mut f32, pitch, channels, window, at, [y, x]);
            (self.kernels.gather)(&pixels)
        }
    }

    /// Writes the pixels of a window that lie in the image.
    ///
    /// # Safety
    /// As for [`Image::load`].
    pub unsafe fn store(
        &self,
        plane: *mut f32,
        pitch: usize,
        channels: usize,
        window: &mut Window,
        at: [usize; 2],
        size: [usize; 2],
    ) {
        // SAFETY: rows and columns that `inside` gives lie in the image and in the window.
        unsafe {
            let at = at.map(|n| n as isize);
            let y = inside(at[0], size[0], self.size[0]);
            let x = inside(at[1], size[1], self.size[1]);
            let pixels = self.runs(plane, pitch, channels, window, at, [y, x]);
            (self.kernels.scatter)(&pixels);
        }
    }
}
