//! Pairs of near words.
//!
//! The text is read around and around. Of frequent words some are left out; the others are joined to sentences of a
//! fixed length, and each word of a sentence is paired with those around it, as far as a random distance.

use super::skipgram::Text;
use tenon_philox::{Philox, Words};
use tenon_sdk::{growth, prelude::*};

/// Pairs that are made at once.
const PAIRS: usize = 3000;
/// Words of a sentence.
const SENTENCE: usize = 1000;
/// Words after which sentences are given up, and words after which the step is asked whether it goes on.
const READ: u32 = 1 << 26;
const READ_UNWATCHED: u32 = 1 << 16;

/// Pairs that are made, and where the next ones come from.
pub struct Pairs {
    words: Words,
    window: u32,
    subsample: f32,
    /// The place in the text.
    position: usize,
    sentence: Vec<i32>,
    /// The place in the sentence of the word that is paired.
    at: usize,
    /// The places of its partners.
    label: usize,
    label_end: usize,
    made: Vec<(i32, i32)>,
    given: usize,
    /// How often the text was read as a whole.
    pub epoch: i32,
    /// How many words were paired.
    pub processed: i64,
}

impl Pairs {
    /// The first pairs of a text that has words.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when nearly all words are left out; `RESOURCE_EXHAUSTED` without memory.
    pub fn new(text: &Text, window: u32, subsample: f32) -> Result<Pairs, KernelError> {
        let mut pairs = Pairs {
            words: Words::new(Philox::keyed(0, [0, 0])),
            window,
            subsample,
            position: text.words.len(),
            sentence: growth::filled(SENTENCE, 0)?,
            at: SENTENCE,
            label: 0,
            label_end: 0,
            made: growth::filled(PAIRS, (0, 0))?,
            given: 0,
            epoch: -1,
            processed: 0,
        };
        pairs.make(text, &mut || Ok(()))?;
        Ok(pairs)
    }

    /// The next pair of a word and one near it.
    ///
    /// # Errors
    /// The error of `check`, which is asked now and then; as [`Pairs::new`].
    pub fn next(
        &mut self,
        text: &Text,
        mut check: impl FnMut() -> Result<(), KernelError>,
    ) -> Result<(i32, i32), KernelError> {
        // Pairs are made when the last one is given, as the counts that the op returns show.
        if self.given >= PAIRS {
            self.make(text, &mut check)?;
        }
        let pair = self.made[self.given];
        self.given += 1;
        if self.given == PAIRS {
            self.make(text, &mut check)?;
        }
        Ok(pair)
    }

    fn make(
        &mut self,
        text: &Text,
        check: &mut dyn FnMut() -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        for at in 0..PAIRS {
            self.made[at] = self.pair(text, check)?;
        }
        self.given = 0;
        Ok(())
    }

    fn pair(
        &mut self,
        text: &Text,
        check: &mut dyn FnMut() -> Result<(), KernelError>,
    ) -> Result<(i32, i32), KernelError> {
        loop {
            if self.label >= self.label_end {
                self.processed += 1;
                self.at += 1;
                if self.at >= SENTENCE {
                    self.at = 0;
                    self.read(text, check)?;
                }
                let reach = 1 + self.words.below(self.window) as usize;
                self.label = self.at.saturating_sub(reach);
                self.label_end = SENTENCE.min(self.at + reach + 1);
            }
            if self.at != self.label {
                break;
            }
            self.label += 1;
        }
        self.label += 1;
        Ok((self.sentence[self.at], self.sentence[self.label - 1]))
    }

    /// Reads the next sentence.
    fn read(
        &mut self,
        text: &Text,
        check: &mut dyn FnMut() -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let (mut filled, mut read) = (0, 0);
        while filled < SENTENCE {
            if self.position >= text.words.len() {
                self.epoch = self.epoch.wrapping_add(1);
                self.position = 0;
            }
            read += 1;
            if read % READ_UNWATCHED == 0 {
                check()?;
            }
            if read == READ {
                return Err(KernelError::invalid_argument(format!(
                    "subsample: expected a number by which enough words are kept, found {}, by which \
                     {filled} of {READ} are: choose a larger one",
                    self.subsample
                )));
            }
            let word = text.words[self.position];
            self.position += 1;
            if self.is_kept(text, word) {
                self.sentence[filled] = word;
                filled += 1;
            }
        }
        Ok(())
    }

    /// Source: equation 5 of Mikolov, Sutskever, Chen, Corrado and Dean, "Distributed representations of words and phrases
    /// and their compositionality", 2013.
    fn is_kept(&mut self, text: &Text, word: i32) -> bool {
        if self.subsample <= 0.0 || self.subsample.is_nan() {
            return true;
        }
        let count = text.counts[word as usize] as f32;
        let scale = self.subsample * text.words.len() as f32;
        let chance = ((count / scale).sqrt() + 1.0) * scale / count;
        self.words.next_f32() <= chance
    }
}
