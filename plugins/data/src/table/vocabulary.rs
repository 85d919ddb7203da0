//! `GenerateVocabRemapping`: where the words of one file are in another.

use super::{file::Lines, key::owned};
use crate::files::{Access, path_of};
use std::collections::HashMap;
use tenon_files::Purpose;
use tenon_sdk::{growth, prelude::*};

/// The words of a file and their numbers.
type Words = HashMap<Box<[u8]>, i64>;

struct Remapping {
    access: Access,
    /// The number of the first word.
    first: u64,
    count: u64,
    /// How many words of the old file count; all without a number.
    old: Option<u64>,
}

impl Kernel for Remapping {
    const MODE: Mode = Mode::Blocking;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        // The attributes are at least 0, and -1 the last one.
        let number = |name: &str| Ok::<_, KernelError>(c.attr::<i64>(name)?.max(0) as u64);
        Ok(Remapping {
            access: crate::files::access(c)?,
            first: number("new_vocab_offset")?,
            count: number("num_new_vocab")?,
            old: u64::try_from(c.attr::<i64>("old_vocab_size")?).ok(),
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let mut new = self.lines(c, 0, "new_vocab_file")?;
        let mut old = self.lines(c, 1, "old_vocab_file")?;
        let words = self.words(c, &mut old)?;
        let (watch, mut number) = (c.watch(), 0u64);
        let mut remapping = Vec::new();
        while new.next_word()? {
            watch.check()?;
            if number >= self.first && number - self.first < self.count {
                growth::push(&mut remapping, words.get(&new.line[..]).copied().unwrap_or(-1))?;
            }
            number += 1;
        }
        if number < self.first.saturating_add(self.count) {
            return Err(KernelError::invalid_argument(format!(
                "new_vocab_file: expected at least {} words after the first {}, found {number} in '{}'",
                self.count, self.first, new.name
            )));
        }
        let present = remapping.iter().filter(|&&number| number >= 0).count();
        c.output::<i64>(0, &[remapping.len() as i64])?.data.copy_from_slice(&remapping);
        c.output::<i32>(1, &[])?.data[0] = i32::try_from(present).unwrap_or(i32::MAX);
        Ok(())
    }
}

impl Remapping {
    fn lines(
        &self,
        c: &ComputeContext<'_>,
        input: usize,
        what: &str,
    ) -> Result<Lines, KernelError> {
        let (&[name], []) = (&c.strings(input)?[..], c.dims(input)) else {
            return Err(KernelError::invalid_argument(format!(
                "{what}: expected a scalar, found shape {:?}",
                c.dims(input)
            )));
        };
        let path = path_of(name);
        let file = self.access.open(what, &path, Purpose::Read)?;
        Ok(Lines::new(file, path.display().to_string()))
    }

    fn words(&self, c: &ComputeContext<'_>, lines: &mut Lines) -> Result<Words, KernelError> {
        let (watch, mut words) = (c.watch(), Words::new());
        let mut number = 0u64;
        while self.old.is_none_or(|size| number < size) && lines.next_word()? {
            watch.check()?;
            growth::reserve_entries(&mut words, 1)?;
            if words.insert(owned(&lines.line)?, number as i64).is_some() {
                return Err(KernelError::invalid_argument(format!(
                    "old_vocab_file: expected words that differ, found '{}' twice in '{}'",
                    String::from_utf8_lossy(&lines.line),
                    lines.name
                )));
            }
            number += 1;
        }
        match self.old {
            Some(size) if number < size => Err(KernelError::invalid_argument(format!(
                "old_vocab_size: expected {size} words in '{}', found {number}",
                lines.name
            ))),
            _ => Ok(words),
        }
    }
}

register_kernel!("GenerateVocabRemapping" on "CPU": Remapping);
