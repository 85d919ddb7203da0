//! Golden data as cases.

use super::search;
use crate::{
    TestkitError,
    check::{Argument, CheckCase, Fill, Subject, Tag},
    golden::{self, GoldenCase},
};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    rc::Rc,
};
use tenon_framework::attr::AttrValue;

/// What a case's name begins with that is from golden data.
const PREFIX: &str = "golden.";

/// Golden data of many ops: a folder of families, or one family. An op's file is read when it is asked for.
#[derive(Debug)]
pub struct Goldens {
    files: BTreeMap<String, PathBuf>,
    read: RefCell<BTreeMap<String, Rc<Vec<GoldenCase>>>>,
}

impl Goldens {
    /// The data below a folder.
    ///
    /// # Errors
    /// The folder cannot be read, or there is no index of an op in it.
    pub fn open(folder: &Path) -> Result<Goldens, TestkitError> {
        let failed = |detail: String| TestkitError::File { path: folder.to_owned(), detail };
        let mut folders = vec![folder.to_owned()];
        for entry in fs::read_dir(folder).map_err(|error| failed(error.to_string()))? {
            let path = entry.map_err(|error| failed(error.to_string()))?.path();
            if path.is_dir() {
                folders.push(path);
            }
        }
        let mut files = BTreeMap::new();
        for path in folders.iter().flat_map(|folder| golden::indexes(folder).unwrap_or_default()) {
            // An index has an archive of its name; one of graphs has not.
            let op = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            if let Some(op) = op.filter(|_| path.with_extension("npz").is_file()) {
                files.insert(op, path);
            }
        }
        if files.is_empty() {
            return Err(failed("no op has golden data here".to_owned()));
        }
        Ok(Goldens { files, read: RefCell::default() })
    }

    /// The ops that have data.
    pub fn ops(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// All cases of an op; none without data.
    ///
    /// # Errors
    /// Data that cannot be read.
    pub fn of_op(&self, op: &str) -> Result<Rc<Vec<GoldenCase>>, TestkitError> {
        if let Some(cases) = self.read.borrow().get(op) {
            return Ok(Rc::clone(cases));
        }
        let cases = match self.files.get(op) {
            Some(file) => golden::read_op(file)?,
            None => Vec::new(),
        };
        let cases = Rc::new(cases);
        self.read.borrow_mut().insert(op.to_owned(), Rc::clone(&cases));
        Ok(cases)
    }

    /// The cases that a subject's types fit; none where the data cannot be read, which the oracle says. Without such
    /// a case, those of other types of indices, with the same indices in the subject's.
    pub fn cases(&self, subject: &Subject) -> Vec<CheckCase> {
        let Ok(all) = self.of_op(&subject.op.name) else { return Vec::new() };
        let fit: Vec<CheckCase> =
            all.iter().filter(|case| fits(subject, case)).map(check_case).collect();
        match fit.is_empty() {
            true => all.iter().filter_map(|case| with_own_indices(subject, case)).collect(),
            false => fit,
        }
    }

    /// The golden case behind a case.
    ///
    /// # Errors
    /// Data that cannot be read.
    pub fn find(&self, op: &str, case: &CheckCase) -> Result<Option<GoldenCase>, TestkitError> {
        let Some(name) = case.name.strip_prefix(PREFIX).filter(|_| case.is(Tag::Golden)) else {
            return Ok(None);
        };
        Ok(self.of_op(op)?.iter().find(|golden| golden.name == name).cloned())
    }
}

fn fits(subject: &Subject, case: &GoldenCase) -> bool {
    subject.types.iter().all(|(name, own)| match (case.attrs.get(name), own) {
        (Some(AttrValue::Type(golden)), AttrValue::Type(own)) => golden == own,
        _ => false,
    }) && lists_fit(subject, case)
}

/// The case with the subject's types of indices in place of its own; `None` where other types differ, where they do not
/// hold an index, and of ops that draw random numbers: others for every type.
fn with_own_indices(subject: &Subject, golden: &GoldenCase) -> Option<CheckCase> {
    if ["seed", "Tseed"].iter().any(|name| subject.op.attr(name).is_some()) {
        return None;
    }
    let own = |(name, own): (&String, &AttrValue)| {
        let same = golden.attrs.get(name).and_then(AttrValue::as_type) == own.as_type();
        same || search::is_index_type(&subject.op, name)
    };
    if !subject.types.iter().all(own) || !lists_fit(subject, golden) {
        return None;
    }
    let mut case = check_case(golden);
    case.attrs.extend(subject.types.clone());
    let types = search::roles(&subject.op, &case.attrs).ok()?;
    for ((dtype, _), input) in types.into_iter().zip(&mut case.inputs) {
        if input.dtype != dtype {
            let Fill::Explicit(value) = &input.fill else { return None };
            input.fill = Fill::Explicit(search::reindexed(value, dtype)?);
            input.dtype = dtype;
        }
    }
    Some(case)
}

/// Lists of types hold only what the kernel takes.
fn lists_fit(subject: &Subject, case: &GoldenCase) -> bool {
    use tenon_framework::attr::AttrList;
    subject.kernel.constraints.iter().all(|constraint| match case.attrs.get(&constraint.attr) {
        Some(AttrValue::List(AttrList::Type(types))) => {
            types.iter().all(|dtype| constraint.types.contains(dtype))
        }
        _ => true,
    })
}

fn check_case(golden: &GoldenCase) -> CheckCase {
    let argument = |(at, tensor): (usize, &tenon_framework::Tensor)| Argument {
        dtype: tensor.dtype(),
        dims: tensor.shape().dims().to_vec(),
        fill: Fill::Explicit(tensor.clone()),
        constant: golden.const_inputs.contains(&at),
    };
    let elements = |argument: &Argument| argument.dims.iter().product::<i64>();
    let inputs: Vec<Argument> = golden.inputs.iter().enumerate().map(argument).collect();
    let mut tags = vec![Tag::Golden];
    if inputs.iter().any(|input| elements(input) == 0) {
        tags.push(Tag::Empty);
    }
    CheckCase {
        name: format!("{PREFIX}{}", golden.name),
        tags,
        attrs: golden.attrs.clone(),
        inputs,
    }
}
