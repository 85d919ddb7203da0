//! The report of quantisation: a table, or JSON.

use crate::table::Table;
use serde_json::{Value, json};
use std::fmt::Write;
use tenon_quantize::{Loss, Noise, Quantized, QuantizedNode};

/// What was done, with the sizes of the files.
pub struct Report<'a> {
    /// The result.
    pub quantized: &'a Quantized,
    /// Bytes before and after.
    pub bytes: [u64; 2],
    /// Samples of the calibration data.
    pub samples: usize,
}

/// A ratio of signal to noise; infinite without a difference.
fn decibels(noise: Option<Noise>) -> String {
    noise.map_or(String::new(), |noise| match noise.decibels() {
        _ if noise.noise == 0.0 => "exact".to_owned(),
        ratio if ratio.is_finite() => format!("{ratio:.1} dB"),
        // The signal is 0, or a number became NaN or infinite.
        _ => "lost".to_owned(),
    })
}

fn relative(noise: Option<Noise>) -> String {
    noise.map_or(String::new(), |noise| format!("{:.2} %", 100.0 * noise.relative()))
}

impl Report<'_> {
    /// For people.
    pub fn text(&self) -> String {
        let mut layers =
            Table::new(["node", "op", ">scale", ">zero point", ">signal to noise", ">error"]);
        for (node, Loss { noise, .. }) in &self.quantized.nodes {
            let affine = node.affine;
            let scale = affine.map_or("float".to_owned(), |affine| format!("{:.4e}", affine.scale));
            let zero = affine.map_or(String::new(), |affine| affine.zero_point.to_string());
            let (name, op) = (node.name.clone(), node.op.clone());
            layers.row([name, op, scale, zero, decibels(*noise), relative(*noise)]);
        }
        let mut text = layers.render(0);
        self.add_outputs(&mut text);
        for (name, reason) in &self.quantized.left {
            let _ = writeln!(text, "'{name}' stays in float: {reason}");
        }
        let [before, after] = self.bytes;
        let ratio = before as f64 / after.max(1) as f64;
        let _ = writeln!(
            text,
            "\n{} layers and {} nodes between them on 8 bits, {before} bytes before, {after} after: {ratio:.2} times \
             smaller",
            self.layers(),
            self.quantized.nodes.len() - self.layers(),
        );
        text
    }

    fn layers(&self) -> usize {
        self.quantized.nodes.iter().filter(|(node, _)| node.is_layer).count()
    }

    fn add_outputs(&self, text: &mut String) {
        if self.samples == 0 || self.quantized.outputs.is_empty() {
            return;
        }
        let mut outputs =
            Table::new(["output", ">signal to noise", ">error", ">largest difference"]);
        for Loss { name, noise } in &self.quantized.outputs {
            let worst = noise.map_or(String::new(), |noise| format!("{:.3e}", noise.worst));
            outputs.row([name.clone(), decibels(*noise), relative(*noise), worst]);
        }
        let _ = write!(text, "\non {} samples\n{}", self.samples, outputs.render(0));
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let noise = |noise: &Option<Noise>| {
            noise.map(|noise| {
                json!({
                    "signal_to_noise_db": Some(noise.decibels()).filter(|ratio| ratio.is_finite()),
                    "relative_error": noise.relative(), "max_difference": noise.worst, "values": noise.count,
                })
            })
        };
        let node = |(node, loss): &(QuantizedNode, Loss)| {
            json!({
                "name": node.name, "op": node.op, "tensor": node.tensor, "float_tensor": node.float,
                "is_layer": node.is_layer, "scale": node.affine.map(|affine| affine.scale),
                "zero_point": node.affine.map(|affine| affine.zero_point), "loss": noise(&loss.noise),
            })
        };
        let output =
            |Loss { name, noise: lost }: &Loss| json!({ "name": name, "loss": noise(lost) });
        let left = |(name, reason): &(String, String)| json!({ "name": name, "reason": reason });
        let quantized = self.quantized;
        json!({
            "nodes": quantized.nodes.iter().map(node).collect::<Vec<Value>>(),
            "outputs": quantized.outputs.iter().map(output).collect::<Vec<Value>>(),
            "in_float": quantized.left.iter().map(left).collect::<Vec<Value>>(),
            "samples": self.samples, "bytes_before": self.bytes[0], "bytes_after": self.bytes[1],
        })
    }
}
