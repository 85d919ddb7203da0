//! `Skipgram`: a vocabulary of a text, and pairs of its words.
//!
//! Pairs are TensorFlow's: tensorflow/core/kernels/word2vec_kernels.cc, whose generator has no seed. Words of one count
//! come in the order of the text here, and in no particular one there.

use super::pairs::Pairs;
use crate::files::access;
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};
use tenon_files::path_of;
use tenon_sdk::{growth, prelude::*};

/// What rare words count as.
const UNKNOWN: &[u8] = b"UNK";

/// A text as numbers of words.
pub struct Text {
    /// The number of each word's entry in the vocabulary; 0 for rare ones.
    pub words: Vec<i32>,
    /// How often each entry occurs.
    pub counts: Vec<i32>,
}

/// A text with its words.
struct Corpus {
    vocabulary: Vec<Vec<u8>>,
    text: Text,
}

/// The words of a text.
fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    text.split(is_blank).filter(|word| !word.is_empty())
}

/// The words that occur at least `least` times, the most frequent one first, with their numbers.
fn frequent(text: &[u8], least: i64) -> Result<Vec<(&[u8], i32)>, KernelError> {
    let (mut places, mut found) = (HashMap::new(), Vec::<(&[u8], i32)>::new());
    for word in words(text) {
        growth::reserve_entries(&mut places, 1)?;
        let place = *places.entry(word).or_insert(found.len());
        match found.get_mut(place) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => growth::push(&mut found, (word, 1))?,
        }
    }
    found.retain(|(_, count)| i64::from(*count) >= least);
    // Stable, so that words of one count keep their order.
    found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    Ok(found)
}

impl Corpus {
    fn new(text: &[u8], least: i64) -> Result<Corpus, KernelError> {
        let frequent = frequent(text, least)?;
        let mut vocabulary = growth::with_room(frequent.len() + 1)?;
        let mut counts = growth::with_room(frequent.len() + 1)?;
        let mut numbers = HashMap::new();
        growth::reserve_entries(&mut numbers, frequent.len())?;
        growth::push(&mut vocabulary, growth::copied(UNKNOWN)?)?;
        growth::push(&mut counts, 0)?;
        for (number, &(word, count)) in (1..).zip(&frequent) {
            growth::push(&mut vocabulary, growth::copied(word)?)?;
            growth::push(&mut counts, count)?;
            numbers.insert(word, number);
        }
        let number = |word| numbers.get(word).copied().unwrap_or(0);
        let numbers: Vec<i32> = growth::collected(words(text).map(number))?;
        counts[0] = numbers.iter().filter(|&&number| number == 0).count() as i32;
        Ok(Corpus { vocabulary, text: Text { words: numbers, counts } })
    }
}

struct Skipgram {
    corpus: Corpus,
    batch: i64,
    pairs: Mutex<Pairs>,
}

impl Kernel for Skipgram {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let name: &[u8] = c.attr("filename")?;
        let (batch, window): (i64, i64) = (c.attr("batch_size")?, c.attr("window_size")?);
        if batch < 0 || u32::try_from(window).is_err() {
            return Err(KernelError::invalid_argument(format!(
                "batch_size and window_size: expected numbers of at least 0 that fit 32 bits, found {batch} and {window}"
            )));
        }
        let text = access(c)?.contents("filename", &path_of(name))?;
        let corpus = Corpus::new(&text, c.attr("min_count")?)?;
        let found = corpus.text.words.len();
        if (found as u64) < 10 * window as u64 || found == 0 {
            return Err(KernelError::invalid_argument(format!(
                "The text file {} contains too little data: {found} words: expected at least ten times window_size, and one",
                String::from_utf8_lossy(name)
            )));
        }
        let pairs = Pairs::new(&corpus.text, window as u32, c.attr("subsample")?)?;
        Ok(Skipgram { corpus, batch, pairs: Mutex::new(pairs) })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let examples = c.output::<i32>(5, &[self.batch])?.data;
        let labels = c.output::<i32>(6, &[self.batch])?.data;
        let text = &self.corpus.text;
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        for (example, label) in examples.iter_mut().zip(labels) {
            (*example, *label) = pairs.next(text, || c.watch().check())?;
        }
        c.output::<i64>(2, &[])?.data[0] = text.words.len() as i64;
        c.output::<i32>(3, &[])?.data[0] = pairs.epoch;
        c.output::<i64>(4, &[])?.data[0] = pairs.processed;
        drop(pairs);
        let dims = [text.counts.len() as i64];
        c.output::<i32>(1, &dims)?.data.copy_from_slice(&text.counts);
        c.set_strings(0, &dims, self.corpus.vocabulary.iter())
    }
}

register_kernel!("Skipgram" on "CPU": Skipgram);
