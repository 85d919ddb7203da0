//! `StringFormat`.

use crate::{
    count_attr,
    summary::{Style, summary},
};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    growth,
    reg::Numerics,
    register_kernel,
};

struct Format {
    /// The texts before, between and after the inputs.
    pieces: Vec<String>,
    summarize: Option<usize>,
}

impl Kernel for Format {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (template, placeholder): (&str, &str) = (c.attr("template")?, c.attr("placeholder")?);
        let pieces: Vec<String> = if placeholder.is_empty() {
            // There is an empty text between any two characters.
            template.chars().map(String::from).collect()
        } else {
            template.split(placeholder).map(str::to_owned).collect()
        };
        let (wanted, found) = (pieces.len().saturating_sub(1), c.input_types().len());
        if wanted != found {
            return Err(KernelError::invalid_argument(format!(
                "template has {wanted} placeholders, found {found} inputs"
            )));
        }
        Ok(Format { pieces, summarize: count_attr(c, "summarize")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let mut text = Vec::new();
        for (at, piece) in self.pieces.iter().enumerate() {
            growth::append(&mut text, piece.as_bytes())?;
            if at < c.input_count() {
                summary(c, at, self.summarize, Style::Ends, &mut text)?;
            }
        }
        c.set_strings(0, &[], [text].into_iter())
    }
}

register_kernel!("StringFormat" on "CPU": Format, numerics = Numerics::EXACT);
