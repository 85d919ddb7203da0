//! Names of devices, full and partial.
//!
//! A full name is `/job:localhost/replica:0/task:0/device:CPU:0`. A partial name leaves parts out or writes
//! `*` for them. The rules are those of TensorFlow's `DeviceNameUtils`.

use crate::text::cut;
use std::{fmt, str::FromStr};
use tenon_abi::Code;
use thiserror::Error;

/// What is wrong with a device name, or with two of them.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DeviceNameError {
    /// Not a device name.
    #[error(
        "device name {name:?} at byte {position}: expected {expected}; a full name is \
         /job:localhost/replica:0/task:0/device:CPU:0",
        name = cut(.name)
    )]
    Syntax {
        /// The name.
        name: String,
        /// Byte in the name.
        position: usize,
        /// What is wanted there.
        expected: &'static str,
    },
    /// Two names that name different things.
    #[error(
        "cannot merge device names '{a}' and '{b}': their {part}s differ",
        a = cut(.a), b = cut(.b)
    )]
    Conflict {
        /// The part.
        part: &'static str,
        /// One name.
        a: String,
        /// The other.
        b: String,
    },
}

impl DeviceNameError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        Code::INVALID_ARGUMENT
    }
}

/// A device name; a part that is `None` is any.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DeviceName {
    /// Job.
    pub job: Option<String>,
    /// Replica.
    pub replica: Option<u32>,
    /// Task.
    pub task: Option<u32>,
    /// Device type, such as `CPU`.
    pub device_type: Option<String>,
    /// Number among the devices of the type.
    pub id: Option<u32>,
}

impl DeviceName {
    /// The full name of a device of this process: job `localhost`, replica 0, task 0.
    pub fn local(device_type: &str, id: u32) -> DeviceName {
        DeviceName::of_task("localhost", 0).with_device(device_type, id)
    }

    /// The name of a task of a job, in replica 0, without a device.
    pub fn of_task(job: &str, task: u32) -> DeviceName {
        let (job, replica, task) = (Some(job.to_owned()), Some(0), Some(task));
        DeviceName { job, replica, task, ..DeviceName::default() }
    }

    /// The name of a device of the task that this names.
    #[must_use]
    pub fn with_device(&self, device_type: &str, id: u32) -> DeviceName {
        DeviceName { device_type: Some(device_type.to_owned()), id: Some(id), ..self.clone() }
    }

    /// Reads a name such as `/job:a/task:0/device:GPU:*`, `/cpu:0`, `CPU:0` or the empty one. Parts may come
    /// in any order; the last of a kind counts. The types `cpu` and `gpu` are capitalised.
    ///
    /// # Errors
    /// Anything else.
    pub fn parse(name: &str) -> Result<DeviceName, DeviceNameError> {
        let mut result = DeviceName::default();
        if name == "/" {
            return Ok(result);
        }
        let mut cursor = Cursor { name, at: 0 };
        if !name.is_empty() && !name.starts_with('/') {
            cursor.device(&mut result)?;
            return if cursor.rest().is_empty() {
                Ok(result)
            } else {
                Err(cursor.fail("the end after TYPE:NUMBER"))
            };
        }
        while !cursor.rest().is_empty() {
            cursor.part(&mut result)?;
        }
        Ok(result)
    }

    /// Whether no part is open.
    pub fn is_full(&self) -> bool {
        self.job.is_some()
            && self.replica.is_some()
            && self.task.is_some()
            && self.device_type.is_some()
            && self.id.is_some()
    }

    /// Whether `self`, as a pattern, covers `name`: each part that `self` gives, `name` gives likewise
    /// (TensorFlow's `IsSpecification`).
    pub fn matches(&self, name: &DeviceName) -> bool {
        fn covers<T: PartialEq>(pattern: &Option<T>, value: &Option<T>) -> bool {
            pattern.is_none() || pattern == value
        }
        covers(&self.job, &name.job)
            && covers(&self.replica, &name.replica)
            && covers(&self.task, &name.task)
            && covers(&self.device_type, &name.device_type)
            && covers(&self.id, &name.id)
    }

    /// Whether `self` is a specification that `name` meets: [`DeviceName::matches`] under TensorFlow's name.
    pub fn is_specification(&self, name: &DeviceName) -> bool {
        self.matches(name)
    }

    /// Whether both name the same task of the same job.
    pub fn is_same_address_space(&self, other: &DeviceName) -> bool {
        let named = self.job.is_some() && self.replica.is_some() && self.task.is_some();
        named && self.job == other.job && self.replica == other.replica && self.task == other.task
    }

    /// Fills the open parts from `base`.
    #[must_use]
    pub fn completed_from(&self, base: &DeviceName) -> DeviceName {
        DeviceName {
            job: self.job.clone().or_else(|| base.job.clone()),
            replica: self.replica.or(base.replica),
            task: self.task.or(base.task),
            device_type: self.device_type.clone().or_else(|| base.device_type.clone()),
            id: self.id.or(base.id),
        }
    }

    /// What both names say (TensorFlow's `MergeDevNames`). Where type or number differ,
    /// `allow_soft_placement` opens them (a differing type opens the number too) instead of refusing.
    ///
    /// # Errors
    /// Different jobs, replicas or tasks; without `allow_soft_placement` different types or numbers.
    pub fn merge(
        &self,
        other: &DeviceName,
        allow_soft_placement: bool,
    ) -> Result<DeviceName, DeviceNameError> {
        let mut merged = self.merge_address_space(other)?;
        match merge_part(&self.device_type, &other.device_type) {
            Some(device_type) => merged.device_type = device_type,
            None if allow_soft_placement => return Ok(merged),
            None => return Err(self.conflict(other, "type")),
        }
        match merge_part(&self.id, &other.id) {
            Some(id) => merged.id = id,
            None if allow_soft_placement => {}
            None => return Err(self.conflict(other, "number")),
        }
        Ok(merged)
    }

    /// As [`DeviceName::merge`], but where type or number differ, `other` counts (TensorFlow's
    /// `MergeOverrideDevNames`).
    ///
    /// # Errors
    /// Different jobs, replicas or tasks.
    pub fn merge_override(&self, other: &DeviceName) -> Result<DeviceName, DeviceNameError> {
        let merged = self.merge_address_space(other)?;
        Ok(DeviceName {
            device_type: other.device_type.clone().or_else(|| self.device_type.clone()),
            id: other.id.or(self.id),
            ..merged
        })
    }

    fn merge_address_space(&self, other: &DeviceName) -> Result<DeviceName, DeviceNameError> {
        Ok(DeviceName {
            job: merge_part(&self.job, &other.job).ok_or_else(|| self.conflict(other, "job"))?,
            replica: merge_part(&self.replica, &other.replica)
                .ok_or_else(|| self.conflict(other, "replica"))?,
            task: merge_part(&self.task, &other.task)
                .ok_or_else(|| self.conflict(other, "task"))?,
            device_type: None,
            id: None,
        })
    }

    fn conflict(&self, other: &DeviceName, part: &'static str) -> DeviceNameError {
        DeviceNameError::Conflict { part, a: self.to_string(), b: other.to_string() }
    }
}

/// What two parts say together; `None` when they differ.
fn merge_part<T: Clone + PartialEq>(a: &Option<T>, b: &Option<T>) -> Option<Option<T>> {
    match (a, b) {
        (Some(a), Some(b)) if a != b => None,
        (a, b) => Some(a.clone().or_else(|| b.clone())),
    }
}

struct Cursor<'a> {
    name: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.name[self.at..]
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn fail(&self, expected: &'static str) -> DeviceNameError {
        DeviceNameError::Syntax { name: self.name.to_owned(), position: self.at, expected }
    }

    fn word(&mut self, expected: &'static str) -> Result<&'a str, DeviceNameError> {
        let rest = self.rest();
        if !rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(self.fail(expected));
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let word = &rest[..end.unwrap_or(rest.len())];
        self.at += word.len();
        Ok(word)
    }

    fn number(&mut self) -> Result<Option<u32>, DeviceNameError> {
        if self.eat("*") {
            return Ok(None);
        }
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        // TensorFlow keeps these numbers as `int32`.
        let number = self.rest()[..digits].parse().ok().filter(|&n: &u32| n <= i32::MAX as u32);
        let number = number.ok_or_else(|| self.fail("'*' or a number that fits int32"))?;
        self.at += digits;
        Ok(Some(number))
    }

    fn part(&mut self, result: &mut DeviceName) -> Result<(), DeviceNameError> {
        if self.eat("/job:") {
            result.job = if self.eat("*") {
                None
            } else {
                Some(self.word("'*' or the name of a job")?.to_owned())
            };
        } else if self.eat("/replica:") {
            result.replica = self.number()?;
        } else if self.eat("/task:") {
            result.task = self.number()?;
        } else if self.eat("/device:") {
            self.device(result)?;
        } else if let Some(legacy) = ["cpu", "CPU", "gpu", "GPU"]
            .into_iter()
            .find(|legacy| self.rest().strip_prefix('/').is_some_and(|r| is_legacy(r, legacy)))
        {
            self.at += 1 + legacy.len() + 1;
            result.device_type = Some(legacy.to_ascii_uppercase());
            result.id = self.number()?;
        } else {
            return Err(self.fail("/job:, /replica:, /task:, /device:, /cpu: or /gpu:"));
        }
        match self.rest() {
            rest if rest.is_empty() || rest.starts_with('/') => Ok(()),
            _ => Err(self.fail("'/' or the end")),
        }
    }

    /// `TYPE`, `TYPE:NUMBER`, with `*` for either.
    fn device(&mut self, result: &mut DeviceName) -> Result<(), DeviceNameError> {
        result.device_type = if self.eat("*") {
            None
        } else {
            let word = self.word("'*' or a device type")?;
            let known = matches!(word, "cpu" | "gpu");
            Some(if known { word.to_ascii_uppercase() } else { word.to_owned() })
        };
        result.id = if self.eat(":") { self.number()? } else { None };
        Ok(())
    }
}

fn is_legacy(rest: &str, name: &str) -> bool {
    rest.strip_prefix(name).is_some_and(|rest| rest.starts_with(':'))
}

impl FromStr for DeviceName {
    type Err = DeviceNameError;

    fn from_str(name: &str) -> Result<DeviceName, DeviceNameError> {
        DeviceName::parse(name)
    }
}

impl fmt::Display for DeviceName {
    /// The canonical form: `/job:a/replica:0/task:0/device:CPU:0`, without the parts that are open.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(job) = &self.job {
            write!(f, "/job:{job}")?;
        }
        if let Some(replica) = self.replica {
            write!(f, "/replica:{replica}")?;
        }
        if let Some(task) = self.task {
            write!(f, "/task:{task}")?;
        }
        if self.device_type.is_none() && self.id.is_none() {
            return Ok(());
        }
        write!(f, "/device:{}:", self.device_type.as_deref().unwrap_or("*"))?;
        match self.id {
            Some(id) => write!(f, "{id}"),
            None => f.write_str("*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> DeviceName {
        DeviceName::parse(text).unwrap()
    }

    #[test]
    fn names_are_read_and_written_canonically() {
        let full = "/job:localhost/replica:0/task:0/device:CPU:0";
        assert_eq!(name(full), DeviceName::local("CPU", 0));
        for (text, canonical) in [
            (full, full),
            ("/cpu:0", "/device:CPU:0"),
            ("/GPU:*", "/device:GPU:*"),
            ("/device:cpu:1", "/device:CPU:1"),
            ("/device:ACCEL", "/device:ACCEL:*"),
            ("/device:accel:0", "/device:accel:0"),
            ("/device:*:3", "/device:*:3"),
            ("/task:1/job:a/gpu:2", "/job:a/task:1/device:GPU:2"),
            ("/job:*/replica:*", ""),
            ("CPU:0", "/device:CPU:0"),
            ("", ""),
            ("/", ""),
            ("/task:1/task:2", "/task:2"),
        ] {
            assert_eq!(name(text).to_string(), canonical, "{text}");
            assert_eq!(name(canonical), name(text));
        }
        assert!(name(full).is_full() && !name("/cpu:0").is_full());
    }

    #[test]
    fn what_is_no_name_is_refused_with_its_place() {
        for text in [
            "/job:",
            "/job:1a",
            "/task:-1",
            "/task:x",
            "/device:",
            "/device::0",
            "/cpu:",
            "/xpu:0",
            "/job:a b",
            "/cpu:0x",
            "/task:4294967296",
            "/task:2147483648",
            "CPU:0/task:0",
            "//",
            "é",
            "/cpu:0/",
        ] {
            assert!(
                matches!(DeviceName::parse(text), Err(DeviceNameError::Syntax { .. })),
                "{text}"
            );
        }
        let error = DeviceName::parse("/job:a/device:GPU:x").unwrap_err();
        assert!(error.to_string().contains("at byte 18: expected '*' or a number"), "{error}");
    }

    #[test]
    fn a_pattern_covers_what_agrees_with_it() {
        let full = DeviceName::local("GPU", 1);
        for pattern in ["", "/gpu:*", "/gpu:1", "/job:localhost", "/device:*:1"] {
            assert!(name(pattern).matches(&full), "{pattern}");
        }
        for pattern in ["/cpu:1", "/gpu:0", "/job:worker", "/task:1"] {
            assert!(!name(pattern).is_specification(&full), "{pattern}");
        }
        assert!(!full.matches(&name("/gpu:1")), "an open part is not the same as any value");
        assert!(full.is_same_address_space(&DeviceName::local("CPU", 0)));
        assert!(!name("/cpu:0").is_same_address_space(&name("/cpu:0")));
    }

    #[test]
    fn merging_joins_and_refuses_what_differs() {
        let merge = |a: &str, b: &str, soft| name(a).merge(&name(b), soft).map(|n| n.to_string());
        assert_eq!(merge("/job:a", "/gpu:1", false).unwrap(), "/job:a/device:GPU:1");
        assert_eq!(merge("/device:GPU:*", "/device:*:2", false).unwrap(), "/device:GPU:2");
        assert_eq!(
            merge("/gpu:1", "/cpu:1", false).unwrap_err().to_string(),
            "cannot merge device names '/device:GPU:1' and '/device:CPU:1': their types differ"
        );
        assert!(merge("/gpu:1", "/gpu:0", false).is_err());
        for (a, b) in [("/job:a", "/job:b"), ("/replica:0", "/replica:1"), ("/task:0", "/task:1")] {
            assert!(merge(a, b, true).is_err(), "soft placement never joins {a} and {b}");
        }
    }

    #[test]
    fn soft_placement_opens_what_differs() {
        let merge = |a: &str, b: &str| name(a).merge(&name(b), true).unwrap().to_string();
        assert_eq!(
            merge("/job:a/gpu:1", "/cpu:1"),
            "/job:a",
            "a differing type opens the number too"
        );
        assert_eq!(merge("/gpu:1", "/gpu:0"), "/device:GPU:*");
        assert_eq!(merge("/gpu:1", "/job:a"), "/job:a/device:GPU:1");
        let forced = name("/job:a/gpu:1").merge_override(&name("/cpu:0")).unwrap();
        assert_eq!(forced.to_string(), "/job:a/device:CPU:0");
        assert!(name("/job:a").merge_override(&name("/job:b")).is_err());
    }

    #[test]
    fn open_parts_are_completed_from_a_base() {
        let base = DeviceName::local("CPU", 0);
        assert_eq!(name("/gpu:3").completed_from(&base), DeviceName::local("GPU", 3));
        assert_eq!(name("").completed_from(&base), base);
    }
}
