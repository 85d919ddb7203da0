//! `NearestNeighbors`: distances are computed in double precision and rounded once; of equal ones the first center wins.

use tenon_sdk::{
    DType, KernelError,
    author::ComputeContext,
    geometry::{GeometryError, byte_size},
    growth,
    reg::Numerics,
    register_kernel,
};

/// Approximate nanoseconds of a term of a distance.
const COST_NS: f64 = 1.0;

/// The number of centers that are wanted, at most all of them.
fn wanted(c: &ComputeContext<'_>, centers: i64) -> Result<i64, KernelError> {
    match c.integer(2, "k")? {
        found if found < 0 => Err(GeometryError::TooSmall { what: "k", least: 0, found }.into()),
        k => Ok(k.min(centers)),
    }
}

fn nearest(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (points, centers) = (c.input::<f32>(0)?, c.input::<f32>(1)?);
    let (&[rows, width], &[count, found]) = (points.dims, centers.dims) else {
        return Err(KernelError::invalid_argument(format!(
            "points and centers must be matrices, found shapes {:?} and {:?}",
            points.dims, centers.dims
        )));
    };
    if width != found {
        let what = "the second dimension of centers";
        return Err(GeometryError::SizeMismatch { what, expected: width, found }.into());
    }
    if rows < 1 {
        let what = "the number of points";
        return Err(GeometryError::TooSmall { what, least: 1, found: rows }.into());
    }
    let k = wanted(c, count)?;
    byte_size(&[rows, k], 8)?;
    let indices = c.output::<i64>(0, &[rows, k])?.data;
    let distances = c.output::<f32>(1, &[rows, k])?.data;
    if k == 0 {
        return Ok(());
    }
    let (width, k) = (width as usize, k as usize);
    let outputs = indices.chunks_exact_mut(k).zip(distances.chunks_exact_mut(k));
    let cost = COST_NS * centers.data.len() as f64 + 10.0 * count as f64;
    c.parallel_items(outputs, cost, |row, (indices, distances)| {
        let point = &points.data[row * width..][..width];
        let distance = |center: usize| -> f64 {
            let terms = point.iter().zip(&centers.data[center * width..][..width]);
            terms.map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum()
        };
        let mut all = growth::collected((0..count as usize).map(|at| (distance(at), at)))?;
        let order = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        if k < all.len() {
            all.select_nth_unstable_by(k, order);
        }
        all[..k].sort_unstable_by(order);
        for ((index, distance), (found, at)) in indices.iter_mut().zip(distances).zip(&all[..k]) {
            (*index, *distance) = (*at as i64, *found as f32);
        }
        Ok(())
    })
}

register_kernel!("NearestNeighbors" on "CPU": fn nearest, host_memory = &["k"],
    numerics = Numerics::relative(1e-6, 1e-6).accumulation(DType::DOUBLE));
