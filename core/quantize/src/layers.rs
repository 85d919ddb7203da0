//! Layers: a product or convolution with constant weights, and the following ops that the quantised
//! op includes.

use super::{
    fold::Fold,
    step::{Step, Uses},
};
use tenon_geometry::fixed_point::Depth;
use tenon_graph::{NodeId, Output};

/// The kind of product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerKind {
    /// A product of matrices.
    MatMul,
    /// A convolution of images and a filter.
    Conv2D,
    /// A convolution of each image channel with its own filter.
    Depthwise,
}

impl LayerKind {
    fn of(op: &str) -> Option<LayerKind> {
        match op {
            "MatMul" => Some(LayerKind::MatMul),
            "Conv2D" => Some(LayerKind::Conv2D),
            "DepthwiseConv2dNative" => Some(LayerKind::Depthwise),
            _ => None,
        }
    }

    /// The op that computes the product on 8 bits.
    pub fn quantized_op(self) -> &'static str {
        match self {
            LayerKind::MatMul => "_QuantizedFusedMatMul",
            LayerKind::Conv2D => "_QuantizedFusedConv2D",
            LayerKind::Depthwise => "_QuantizedFusedDepthwiseConv2dNative",
        }
    }
}

/// The memory layout of a layer's weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Weights {
    /// The number of output channels.
    pub channels: usize,
    /// The number of products per sum.
    pub depth: usize,
    /// Whether the weights of one channel are contiguous; otherwise the channels are.
    pub by_channel: bool,
}

impl Weights {
    /// The channel of a weight.
    pub fn channel(self, at: usize) -> usize {
        if self.by_channel { at / self.depth.max(1) } else { at % self.channels.max(1) }
    }
}

/// A layer.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    pub kind: LayerKind,
    /// The node of the product.
    pub anchor: NodeId,
    /// The nodes of the layer, including the product.
    pub nodes: Vec<NodeId>,
    /// The input of the product, or of the padding before it.
    pub input: Output,
    /// The output of the layer.
    pub output: Output,
    pub weights: Weights,
    /// The greatest magnitude of the weights of each channel.
    pub greatest: Vec<f32>,
    /// The ops after the product, as a factor and a shift per channel.
    pub fold: Fold,
    /// `NONE`, `RELU` or `RELU6`.
    pub activation: &'static str,
    /// The `explicit_paddings`, if the layer includes a padding before the convolution.
    pub pads: Option<Vec<i64>>,
}

/// The reason why a product stays in float.
pub(super) type Reason = String;

/// The greatest magnitudes of 8-bit values minus their zero points: of activations, and of
/// symmetric weights.
pub(super) const MAX_MAGNITUDES: [i64; 2] = [255, 128];

/// The layer that starts with this product; `None` if the node is not a product of floats.
pub(super) fn find(
    step: Step<'_>,
    uses: &Uses,
    kept: &dyn Fn(NodeId) -> bool,
    id: NodeId,
) -> Option<Result<Layer, Reason>> {
    let kind = LayerKind::of(step.op(id))?;
    let inputs = &step.node(id).inputs;
    if !step.is_float(inputs[0]) || step.is_fed(id.into()) {
        return None;
    }
    Some(begin(step, kind, id).map(|mut layer| {
        take_padding(step, uses, kept, &mut layer);
        follow(step, uses, kept, &mut layer);
        layer
    }))
}

fn begin(step: Step<'_>, kind: LayerKind, id: NodeId) -> Result<Layer, Reason> {
    let node = step.node(id);
    if !step.is_channels_last(id) {
        return Err("its images have their channels first".to_owned());
    }
    let weights = step.constant(node.inputs[1]).ok_or("its weights are not a constant")?;
    check_finite(step, node.inputs[1])?;
    let weights = match (kind, weights.shape().dims()) {
        (LayerKind::MatMul, &[n, k]) if step.flag(id, "transpose_b") => layout(n, k, true),
        (LayerKind::MatMul, &[k, n]) => layout(n, k, false),
        (LayerKind::Conv2D, &[r, s, c, f]) => {
            let channels = step.dims(node.inputs[0]).and_then(|dims| dims.get(3).copied());
            if channels != Some(c) {
                return Err(format!(
                    "its filter is of {c} channels, its images of {}",
                    channels.map_or("an unknown number".to_owned(), |found| found.to_string())
                ));
            }
            layout(f, r.saturating_mul(s).saturating_mul(c), false)
        }
        (LayerKind::Depthwise, &[r, s, c, m]) => {
            layout(c.saturating_mul(m), r.saturating_mul(s), false)
        }
        (_, dims) => return Err(format!("its weights have shape {dims:?}")),
    };
    let [left, right] = MAX_MAGNITUDES;
    Depth { left, right, bias: 0 }.check(weights.depth).map_err(|error| error.to_string())?;
    if weights.channels == 0 || weights.depth == 0 {
        return Err("it has no weights".to_owned());
    }
    let mut greatest = vec![0f32; weights.channels];
    for (at, value) in step.floats(node.inputs[1]).unwrap_or_default().iter().enumerate() {
        let most = &mut greatest[weights.channel(at)];
        *most = most.max(value.abs());
    }
    Ok(Layer {
        greatest,
        kind,
        anchor: id,
        nodes: vec![id],
        input: node.inputs[0],
        output: id.into(),
        weights,
        fold: Fold::new(weights.channels),
        activation: "NONE",
        pads: None,
    })
}

/// Checks that weights are finite: no integer represents NaN or an infinity, which the float graph
/// would pass on.
fn check_finite(step: Step<'_>, weights: Output) -> Result<(), Reason> {
    let values = step.floats(weights).unwrap_or_default();
    let Some(at) = values.iter().position(|value| !value.is_finite()) else { return Ok(()) };
    let (name, found) = (step.graph.output_name(weights), values[at]);
    Err(format!("its weights '{name}' hold {found} at index {at}, which no integer can represent"))
}

fn layout(channels: i64, depth: i64, by_channel: bool) -> Weights {
    let size = |dim: i64| usize::try_from(dim).unwrap_or(usize::MAX);
    Weights { channels: size(channels), depth: size(depth), by_channel }
}

/// Includes a `Pad` of rows and columns before a convolution without padding.
fn take_padding(step: Step<'_>, uses: &Uses, kept: &dyn Fn(NodeId) -> bool, layer: &mut Layer) {
    let pad = layer.input;
    let convolves =
        layer.kind != LayerKind::MatMul && step.text(layer.anchor, "padding") == Some("VALID");
    let alone = uses.of_tensor(pad).len() == 1 && !step.is_fetched(pad) && !step.is_fed(pad);
    if !convolves || !alone || step.op(pad.node) != "Pad" || kept(pad.node) {
        return;
    }
    let inputs = &step.node(pad.node).inputs;
    let Some(pads) = step.integers(inputs[1]) else { return };
    if let [0, 0, top, bottom, left, right, 0, 0] = *pads
        && [top, bottom, left, right].iter().all(|pad| *pad >= 0)
    {
        layer.nodes.insert(0, pad.node);
        (layer.input, layer.pads) = (inputs[0], Some(pads));
    }
}

/// Includes the following ops as long as no other node reads the values in between.
fn follow(step: Step<'_>, uses: &Uses, kept: &dyn Fn(NodeId) -> bool, layer: &mut Layer) {
    while let Some(next) = only_user(step, uses, layer.output).filter(|next| !kept(*next)) {
        if let Some(activation) = activation(step, next) {
            layer.activation = activation;
        } else {
            let mut fold = layer.fold.clone();
            if !fold.take(step, next, layer.output) || !fold.keeps_finite(&layer.greatest) {
                return;
            }
            layer.fold = fold;
        }
        layer.nodes.push(next);
        layer.output = next.into();
        if layer.activation != "NONE" {
            return;
        }
    }
}

/// The value of attribute `activation` for a node that is an activation.
pub(super) fn activation(step: Step<'_>, id: NodeId) -> Option<&'static str> {
    match step.op(id) {
        "Relu" => Some("RELU"),
        "Relu6" => Some("RELU6"),
        _ => None,
    }
}

/// The only reader of a tensor that is neither fetched nor fed.
pub(super) fn only_user(step: Step<'_>, uses: &Uses, tensor: Output) -> Option<NodeId> {
    let [only] = uses.of_tensor(tensor) else { return None };
    let outputs = step.node(tensor.node).outputs().len() as u32;
    let others = (0..outputs).map(|at| Output::new(tensor.node, at));
    let seen = others.into_iter().any(|other| {
        step.is_fetched(other)
            || step.is_fed(other)
            || (other != tensor && !uses.of_tensor(other).is_empty())
    });
    (!seen && !step.is_fed(only.node.into())).then_some(only.node)
}
