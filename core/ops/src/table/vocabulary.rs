//! Numbers of the words of one file in another.

use crate::shape::input_of_rank;
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::op::GradientRule;

register_op!(
    "GenerateVocabRemapping",
    inputs = &["new_vocab_file: string", "old_vocab_file: string"],
    outputs = &["remapping: int64", "num_present: int32"],
    attrs = &[
        "new_vocab_offset: int >= 0",
        "num_new_vocab: int >= 0",
        "old_vocab_size: int >= -1 = -1"
    ],
    shape = remapping,
    checks = true,
    gradient = GradientRule::None,
    summary = "For each of some lines of a file the number of the same line of another file, -1 where there is none, and how many there are.",
);

fn remapping(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "new_vocab_file", 0)?;
    input_of_rank(c, 1, "old_vocab_file", 0)?;
    c.set_output(0, c.shape_of(&[c.attr("num_new_vocab")?]))?;
    c.set_output(1, c.scalar())
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn each_new_word_has_a_number() {
        let attrs = [("new_vocab_offset", 1i64.into()), ("num_new_vocab", 5i64.into())];
        let cases: [(&[&str], &str); 2] = [
            (&["[]", "[]"], "[5]; []"),
            (&["[]", "[1]"], "! old_vocab_file must have 0 dimensions, got 1"),
        ];
        check("GenerateVocabRemapping", &attrs, &cases);
    }
}
