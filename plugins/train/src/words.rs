//! The two ops of an old model of words: pairs of near words of a text, and updates of the vectors of such pairs.

mod negative;
mod pairs;
mod skipgram;
