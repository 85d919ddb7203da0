//! The gradient of a convolution by its input, as convolutions over the gradient of its outputs
//! with the filter turned round: one for each phase of the inputs.

use super::phases::{Phase, phases, transposed};
use crate::{
    kernels::{
        linalg::{
            gemm::{
                blocks::{Placement, Product},
                ending::Ending,
                isa::Isa,
                left::Left,
                right::{Right, pack_panel, packed_len},
                spread,
            },
            product::{Factor, Operand, Target},
        },
        nn::{patches::is_pointwise, windows::Windows},
    },
    panels::uninitialised,
    split::{Parts, for_units},
};
use tenon_sdk::{Code, KernelError, author::ComputeContext, geometry::Conv2dGeometry};

/// Approximate numbers per nanosecond that are packed.
const PACKED_PER_NS: f64 = 2.0;

/// Whether tiles are faster than adding patches: with few channels, most of a vector is empty.
pub fn is_fast<W: Factor>(isa: &Isa<W>, g: &Conv2dGeometry) -> bool {
    let taps = (g.height.kernel * g.width.kernel) as usize;
    let channels = g.filter_channels as usize;
    taps == 1 || 2 * channels >= isa.lanes
}

/// Computes the gradient by all inputs, channels last, from those of all outputs.
///
/// # Errors
/// Out of memory; the call was cancelled.
pub fn by_phases<W: Factor>(
    c: &ComputeContext<'_>,
    isa: &'static Isa<W>,
    g: &Conv2dGeometry,
    [filter, dy]: [&[W]; 2],
    dx: &mut [W],
) -> Result<(), KernelError> {
    let (rows, columns) = (phases(&g.height), phases(&g.width));
    if rows.clone().chain(columns.clone()).any(|phase| phase.window.kernel == 0) {
        dx.fill(W::ZERO);
    }
    for group in 0..g.groups as usize {
        for y in rows.clone().filter(|y| y.window.kernel > 0) {
            for x in columns.clone().filter(|x| x.window.kernel > 0) {
                let right = turned(c, isa, g, filter, (group, [&y, &x]))?;
                by_phase(c, g, right, dy, (group, [&y, &x]), dx)?;
            }
        }
    }
    Ok(())
}

/// Computes the gradient by the inputs of two phases, for one group of channels.
fn by_phase<W: Factor>(
    c: &ComputeContext<'_>,
    g: &Conv2dGeometry,
    right: Right<'_, W>,
    dy: &[W],
    (group, [y, x]): (usize, [&Phase; 2]),
    dx: &mut [W],
) -> Result<(), KernelError> {
    let phase = transposed(g, y, x);
    let windows = Windows::new(dy, &phase, group);
    let rows = Left::<W>::rows(&windows);
    let (outputs, group_outputs) = (g.out_channels as usize, phase.filter_channels as usize);
    let data = &dy[group * group_outputs..];
    let pixels = Operand { data, rows, cols: group_outputs, strides: [outputs, 1] };
    let left: &dyn Left<W> = if is_pointwise(&phase) { &pixels } else { &windows };
    let (channels, count) = (g.in_channels as usize, g.filter_channels as usize);
    let line = g.width.input as usize * channels;
    // A phase of one input has no distance to the next one.
    let [down, right_of] = [&g.height, &g.width].map(|w| w.stride.min(w.input) as usize);
    let dx = &mut dx[y.first * line + x.first * channels + group * count..];
    let strides = [right_of * channels, 1];
    // SAFETY: the inputs of a phase are inside `dx`, which only this call uses.
    let target = unsafe { Target::new(dx.as_mut_ptr(), rows, count, strides) };
    if g.height.stride == 1 && g.width.stride == 1 {
        return spread::compute(c, &Product::new(left, right, &target, Ending::NONE));
    }
    let placement = Placement {
        rows: x.window.output as usize,
        lines: y.window.output as usize,
        line_step: down * line,
        image_step: g.height.input as usize * line,
    };
    spread::compute(c, &Product::in_lines(left, right, &target, placement))
}

/// The taps of two phases in reverse, each with a row for every output channel of a group and a
/// column for every input channel.
fn turned<'a, W: Factor>(
    c: &ComputeContext<'a>,
    isa: &'static Isa<W>,
    g: &Conv2dGeometry,
    filter: &[W],
    (group, [y, x]): (usize, [&Phase; 2]),
) -> Result<Right<'a, W>, KernelError> {
    let (channels, outputs) = (g.filter_channels as usize, g.out_channels as usize);
    let group_outputs = g.group_outputs() as usize;
    let (columns, width) = (x.window.kernel as usize, isa.columns);
    let depth = y.window.kernel as usize * columns * group_outputs;
    let len = packed_len(isa, [depth, channels]).ok_or_else(|| {
        KernelError::new(Code::RESOURCE_EXHAUSTED, "the size of the packed filter overflows")
    })?;
    let packed = uninitialised::<W>(c, len)?;
    let panel_len = depth * width;
    let parts = Parts::new(&mut *packed);
    for_units(c, channels.div_ceil(width), panel_len as f64 / PACKED_PER_NS, |panels| {
        for panel in panels {
            // SAFETY: panels do not overlap, and each belongs to one range.
            let to = unsafe { parts.part(panel * panel_len..(panel + 1) * panel_len) };
            let some = panel * width..channels.min((panel + 1) * width);
            if some.len() < width {
                to.fill(W::ZERO);
            }
            for (tap, to) in to.chunks_exact_mut(group_outputs * width).enumerate() {
                let tap = y.tap(tap / columns) * g.width.kernel as usize + x.tap(tap % columns);
                let data = &filter[tap * channels * outputs + group * group_outputs..];
                let (rows, cols) = (group_outputs, channels);
                pack_panel(
                    &Operand { data, rows, cols, strides: [1, outputs] },
                    some.clone(),
                    to,
                    width,
                );
            }
        }
    })?;
    Ok(Right::packed(isa, [depth, channels], packed))
}
