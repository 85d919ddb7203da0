//! `FractionalMaxPool`, `FractionalAvgPool` and their gradients: windows of rows and columns whose numbers are drawn.
//!
//! Source: Graham, "Fractional max-pooling", 2014. The draws and the roundings are TensorFlow's, so that the same seeds
//! give the same windows. Windows that overlap have the first row and column of the next one, too.

use std::marker::PhantomData;
use tenon_philox::{Philox, Stream, Words};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::{GeometryError, byte_size, fractional_dims, validate_dims},
    growth,
    reg::Numerics,
    register_kernel,
};

/// An element of which there are means.
trait Mean: Number {
    /// The quotient of a sum and a number of terms; of integers rounded to 0.
    fn over(self, terms: usize) -> Self;
}

macro_rules! means {
    ($($ty:ty),*) => {$(
        impl Mean for $ty {
            fn over(self, terms: usize) -> $ty {
                self / terms as $ty
            }
        }
    )*};
}

means!(i32, i64, f32, f64);

/// Where windows over so many elements begin, and the end of the last one. `stream` gives steps of a generator.
fn ends(
    [input, output]: [usize; 2],
    is_pseudo: bool,
    mut stream: impl FnMut(u64) -> Philox,
) -> Result<Vec<i64>, KernelError> {
    let mut ends = growth::with_room(output + 1)?;
    ends.push(0);
    if is_pseudo {
        // The first and the last window have as many elements as the others, or one more.
        let (alpha, fewest) = (input as f64 / output as f64, (input / output) as f64);
        let by_first = (fewest + 2.0) / alpha - 1.0;
        let by_last = (input as f64 + 1.0 - fewest) / alpha - (output as f64 - 1.0);
        let shift = Words::new(stream(1)).next_f64() * by_first.min(by_last);
        let end = |window: usize| (alpha * (window as f64 + shift)).ceil() as i64 - 1;
        ends.extend((1..output).map(end));
        ends.push(input as i64);
        return Ok(ends);
    }
    let (fewest, larger) = ((input / output) as i64, input % output);
    let mut sizes = growth::collected((0..output).map(|at| fewest + i64::from(at < larger)))?;
    let mut words = Words::new(stream((output as u64).div_ceil(4)));
    for at in 0..output.saturating_sub(1) {
        sizes.swap(at, at + words.next_word() as usize % (output - at));
    }
    let mut last = 0;
    for size in sizes {
        last += size;
        ends.push(last);
    }
    Ok(ends)
}

/// The windows of one dimension.
struct Windows<'a> {
    ends: &'a [i64],
    overlap: bool,
    /// The number of elements.
    input: usize,
}

impl Windows<'_> {
    fn count(&self) -> usize {
        self.ends.len() - 1
    }

    fn elements(&self, window: usize) -> std::ops::Range<usize> {
        let end = self.ends[window + 1] as usize + usize::from(self.overlap);
        self.ends[window] as usize..end.min(self.input)
    }
}

/// Calls a function for each window of an image, row by row, and each of its pixels; it is given their numbers.
fn for_pixels(rows: &Windows<'_>, columns: &Windows<'_>, mut each: impl FnMut(usize, usize)) {
    for row in 0..rows.count() {
        for column in 0..columns.count() {
            let window = row * columns.count() + column;
            for x in rows.elements(row) {
                columns.elements(column).for_each(|y| each(window, x * columns.input + y));
            }
        }
    }
}

/// How the elements of windows are pooled.
struct Pool<T, const IS_MEAN: bool> {
    ratio: Vec<f32>,
    is_pseudo: bool,
    overlap: bool,
    /// The stream, and where it began if each call draws the same windows.
    stream: Stream,
    start: Option<Philox>,
    of: PhantomData<fn(T)>,
}

impl<T: Mean, const IS_MEAN: bool> Pool<T, IS_MEAN> {
    fn ends(&self, sizes: [[usize; 2]; 2]) -> Result<[Vec<i64>; 2], KernelError> {
        let mut at = self.start;
        let mut stream = |steps: u64| match &mut at {
            Some(start) => {
                let section = *start;
                start.skip(steps);
                section
            }
            None => self.stream.take(steps),
        };
        Ok([
            ends(sizes[0], self.is_pseudo, &mut stream)?,
            ends(sizes[1], self.is_pseudo, &mut stream)?,
        ])
    }

    /// Pools an image, whose pixels have so many channels.
    fn pool(
        &self,
        rows: &Windows<'_>,
        columns: &Windows<'_>,
        channels: usize,
        x: &[T],
        y: &mut [T],
    ) {
        y.fill(if IS_MEAN { T::ZERO } else { T::LOWEST });
        for_pixels(rows, columns, |window, pixel| {
            let y = y[window * channels..][..channels].iter_mut();
            for (y, &x) in y.zip(&x[pixel * channels..][..channels]) {
                *y = match IS_MEAN {
                    true => y.add(x),
                    false if x > *y => x,
                    false => *y,
                };
            }
        });
        if IS_MEAN {
            for (window, y) in y.chunks_exact_mut(channels).enumerate() {
                let (row, column) = (window / columns.count(), window % columns.count());
                let terms = rows.elements(row).len() * columns.elements(column).len();
                y.iter_mut().for_each(|y| *y = y.over(terms));
            }
        }
    }
}

impl<T: Mean, const IS_MEAN: bool> Kernel for Pool<T, IS_MEAN> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (seeds, is_fixed): ([i64; 2], bool) =
            ([c.attr("seed")?, c.attr("seed2")?], c.attr("deterministic")?);
        if !is_fixed && seeds != [0, 0] {
            return Err(KernelError::invalid_argument(format!(
                "seed and seed2 must be 0 unless deterministic is set, found {seeds:?}"
            )));
        }
        let stream = Stream::new(seeds[0], seeds[1]);
        Ok(Pool {
            ratio: c.attr("pooling_ratio")?,
            is_pseudo: c.attr("pseudo_random")?,
            overlap: c.attr("overlapping")?,
            start: is_fixed.then(|| stream.take(0)),
            stream,
            of: PhantomData,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<T>(0)?;
        let dims = fractional_dims(x.dims, &self.ratio)?;
        let size = |at: usize| [x.dims[at] as usize, dims[at] as usize];
        let [row_ends, column_ends] = self.ends([size(1), size(2)])?;
        for (output, ends) in [(1, &row_ends), (2, &column_ends)] {
            c.output::<i64>(output, &[ends.len() as i64])?.data.copy_from_slice(ends);
        }
        let windows = |ends, at: usize| Windows { ends, overlap: self.overlap, input: size(at)[0] };
        let (rows, columns) = (windows(&row_ends, 1), windows(&column_ends, 2));
        let channels = x.dims[3] as usize;
        let [from, to] = [x.dims, &dims[..]].map(|dims| (dims[1] * dims[2] * dims[3]) as usize);
        let y = c.output::<T>(0, &dims)?.data;
        if y.is_empty() {
            return Ok(());
        }
        let images = y.chunks_exact_mut(to).zip(x.data.chunks_exact(from));
        c.parallel_items(images, 2.0 * from as f64, |_, (y, x)| {
            self.pool(&rows, &columns, channels, x, y);
            Ok(())
        })
    }
}

/// The ends of `windows` windows over `size` elements, in an input.
fn given(
    c: &ComputeContext<'_>,
    (input, what): (usize, &'static str),
    size: i64,
    windows: i64,
) -> Result<Vec<i64>, KernelError> {
    if c.dims(input).len() != 1 {
        let found = c.dims(input).len();
        return Err(GeometryError::Rank { what, expected: 1, found }.into());
    }
    let ends = c.integers(input)?;
    let is_ordered = ends.windows(2).all(|pair| pair[0] < pair[1]);
    let is_inside = ends.first().is_some_and(|&first| first >= 0) && ends.last() <= Some(&size);
    match ends.len() as i64 == windows + 1 && is_ordered && is_inside {
        true => Ok(ends),
        false => Err(KernelError::invalid_argument(format!(
            "{what} must hold {} numbers, each greater than the one before, from 0 to {size}, found {ends:?}",
            windows + 1
        ))),
    }
}

/// The gradients of pooling; the first input of the ends of windows follows from the op.
struct Grad<T, const IS_MEAN: bool> {
    overlap: bool,
    of: PhantomData<fn(T)>,
}

/// The inputs of a gradient.
struct Given<'c, T> {
    dims: Vec<i64>,
    grad: &'c [T],
    row_ends: Vec<i64>,
    column_ends: Vec<i64>,
}

impl<T: Mean, const IS_MEAN: bool> Grad<T, IS_MEAN> {
    fn given<'c>(&self, c: &ComputeContext<'c>) -> Result<Given<'c, T>, KernelError> {
        let at = if IS_MEAN { 1 } else { 2 };
        let dims = match IS_MEAN {
            true if c.dims(0).len() == 1 => c.integers(0)?,
            true => {
                let (what, found) = ("orig_input_tensor_shape", c.dims(0).len());
                return Err(GeometryError::Rank { what, expected: 1, found }.into());
            }
            false => growth::copied(c.dims(0))?,
        };
        validate_dims(&dims).map_err(|error| error.of("orig_input_tensor_shape"))?;
        let grad = c.input::<T>(at)?;
        let fits = dims.len() == 4
            && grad.dims.len() == 4
            && [0, 3].iter().all(|&at| dims[at] == grad.dims[at])
            && (IS_MEAN || c.dims(1) == grad.dims);
        if !fits {
            let of = if IS_MEAN { "" } else { " and that of orig_output" };
            return Err(KernelError::invalid_argument(format!(
                "out_backprop must have 4 dimensions, the batch and the channels of an input of shape {dims:?}{of}, found \
                 shape {:?}",
                grad.dims
            )));
        }
        let rows = (at + 1, "row_pooling_sequence");
        let row_ends = given(c, rows, dims[1], grad.dims[1])?;
        let columns = (at + 2, "col_pooling_sequence");
        let column_ends = given(c, columns, dims[2], grad.dims[2])?;
        Ok(Given { dims, grad: grad.data, row_ends, column_ends })
    }

    /// Adds the gradient of an image: to each element of a window its part.
    fn spread(
        (rows, columns): (&Windows<'_>, &Windows<'_>),
        channels: usize,
        grad: &[T],
        y: &mut [T],
    ) -> Result<(), KernelError> {
        let mut sums = growth::filled(y.len(), 0.0f64)?;
        for_pixels(rows, columns, |window, pixel| {
            let (row, column) = (window / columns.count(), window % columns.count());
            let terms = (rows.elements(row).len() * columns.elements(column).len()) as f64;
            let grads = &grad[window * channels..][..channels];
            let sums = sums[pixel * channels..][..channels].iter_mut();
            sums.zip(grads).for_each(|(sum, grad)| *sum += grad.to_f64() / terms);
        });
        y.iter_mut().zip(sums).for_each(|(y, sum)| *y = T::from_f64(sum));
        Ok(())
    }

    /// Adds the gradient of an image: to the first of the greatest elements of each window all of it.
    fn choose(
        (rows, columns): (&Windows<'_>, &Windows<'_>),
        channels: usize,
        (x, grad): (&[T], &[T]),
        y: &mut [T],
    ) -> Result<(), KernelError> {
        let mut chosen = growth::filled(grad.len(), usize::MAX)?;
        for_pixels(rows, columns, |window, pixel| {
            for channel in 0..channels {
                let (best, at) =
                    (&mut chosen[window * channels + channel], pixel * channels + channel);
                if *best == usize::MAX || x[*best] < x[at] {
                    *best = at;
                }
            }
        });
        y.fill(T::ZERO);
        for (&at, &grad) in chosen.iter().zip(grad) {
            y[at] = y[at].add(grad);
        }
        Ok(())
    }
}

impl<T: Mean, const IS_MEAN: bool> Kernel for Grad<T, IS_MEAN> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Grad { overlap: c.attr("overlapping")?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let Given { dims, grad, row_ends, column_ends } = self.given(c)?;
        let windows =
            |ends, at: usize| Windows { ends, overlap: self.overlap, input: dims[at] as usize };
        let both = (&windows(&row_ends, 1), &windows(&column_ends, 2));
        byte_size(&dims, 8)?;
        let y = c.output::<T>(0, &dims)?.data;
        let image = (dims[1] * dims[2] * dims[3]) as usize;
        if y.is_empty() || grad.is_empty() {
            y.fill(T::ZERO);
            return Ok(());
        }
        let channels = dims[3] as usize;
        let x = if IS_MEAN { &[] } else { c.input::<T>(0)?.data };
        let grads = grad.chunks_exact(grad.len() / dims[0] as usize);
        let images = y.chunks_exact_mut(image).zip(grads);
        c.parallel_items(images, 2.0 * image as f64, |number, (y, grad)| match IS_MEAN {
            true => Self::spread(both, channels, grad, y),
            false => {
                let x = &x[number * image..][..image];
                Self::choose(both, channels, (x, grad), y)
            }
        })
    }
}

type MaxPool<T> = Pool<T, false>;
type AvgPool<T> = Pool<T, true>;
type MaxGrad<T> = Grad<T, false>;
type AvgGrad<T> = Grad<T, true>;

register_kernel!("FractionalMaxPool" on "CPU": MaxPool<T> for "T" in [i32, i64, f32, f64],
    numerics = Numerics::EXACT);
register_kernel!("FractionalAvgPool" on "CPU": AvgPool<T> for "T" in [i32, i64, f32, f64],
    numerics = Numerics::relative(1e-30, 1e-6));
register_kernel!("FractionalMaxPoolGrad" on "CPU": MaxGrad<T> for "T" in [i32, i64, f32, f64],
    numerics = Numerics::relative(1e-30, 1e-6));
register_kernel!("FractionalAvgPoolGrad" on "CPU": AvgGrad<T> for "T" in [i32, i64, f32, f64],
    host_memory = &["orig_input_tensor_shape"], numerics = Numerics::relative(1e-30, 1e-6));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_have_the_fewest_elements_or_one_more() {
        for (input, output) in [(7, 4), (23, 10), (8, 4), (5, 5), (9, 1)] {
            for is_pseudo in [false, true] {
                let stream = Stream::new(3, 5);
                for _ in 0..20 {
                    let ends =
                        ends([input, output], is_pseudo, |steps| stream.take(steps)).unwrap();
                    assert_eq!((ends[0], ends[output]), (0, input as i64));
                    let fewest = (input / output) as i64;
                    let sizes = ends.windows(2).map(|pair| pair[1] - pair[0]);
                    assert!(
                        sizes.clone().all(|size| (fewest..=fewest + 1).contains(&size)),
                        "{ends:?}"
                    );
                }
            }
        }
    }
}
