//! The state file of a folder of checkpoints: a `CheckpointState` in protobuf's text form.

use super::files;
use crate::TrainError;
use std::{fmt::Write, fs, io, path::Path};

/// Which checkpoints a folder has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckpointState {
    /// The newest checkpoint.
    pub model_checkpoint_path: String,
    /// All that are kept, the newest last.
    pub all_model_checkpoint_paths: Vec<String>,
    /// When each of them was written, in seconds since 1970.
    pub all_model_checkpoint_timestamps: Vec<f64>,
    /// When the last checkpoint was written that is kept for good.
    pub last_preserved_timestamp: Option<f64>,
}

/// Why a text is not a state file.
#[derive(Debug)]
struct Misread {
    line: usize,
    expected: &'static str,
    found: String,
}

impl CheckpointState {
    /// Reads the state file of a folder; `None` if there is none. Paths in it are relative to the folder, or absolute.
    ///
    /// # Errors
    /// The file cannot be read, or has another form: the error names the line.
    pub fn read(folder: &Path, name: &str) -> Result<Option<CheckpointState>, TrainError> {
        let path = folder.join(name);
        let text = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(TrainError::file("a state file", &path, source)),
        };
        let misread = |misread: Misread| TrainError::State {
            path: path.clone(),
            line: misread.line,
            expected: misread.expected,
            found: misread.found,
        };
        let text = String::from_utf8(text).map_err(|_| {
            misread(Misread { line: 1, expected: "text in UTF-8", found: "other bytes".to_owned() })
        })?;
        CheckpointState::parse(&text).map(Some).map_err(misread)
    }

    /// Writes the state file of a folder in place of the former one. A reader sees one of the two as a whole.
    ///
    /// # Errors
    /// The folder or the file cannot be written.
    pub fn write(&self, folder: &Path, name: &str) -> Result<(), TrainError> {
        files::write(&folder.join(name), self.to_text().as_bytes(), "a state file")
    }

    /// The text.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line = |field: &str, value: String| {
            let _ = writeln!(text, "{field}: {value}");
        };
        line("model_checkpoint_path", quoted(&self.model_checkpoint_path));
        for path in &self.all_model_checkpoint_paths {
            line("all_model_checkpoint_paths", quoted(path));
        }
        for at in &self.all_model_checkpoint_timestamps {
            line("all_model_checkpoint_timestamps", at.to_string());
        }
        if let Some(at) = self.last_preserved_timestamp {
            line("last_preserved_timestamp", at.to_string());
        }
        text
    }

    fn parse(text: &str) -> Result<CheckpointState, Misread> {
        let mut state = CheckpointState::default();
        let mut reader = Reader { rest: text, line: 1 };
        while reader.skip_blanks() {
            let field = reader.word();
            if !reader.takes(':') {
                return Err(reader.misread("a field and a colon"));
            }
            match field {
                "model_checkpoint_path" => state.model_checkpoint_path = reader.string()?,
                "all_model_checkpoint_paths" => {
                    state.all_model_checkpoint_paths.push(reader.string()?);
                }
                "all_model_checkpoint_timestamps" => {
                    state.all_model_checkpoint_timestamps.push(reader.number()?);
                }
                "last_preserved_timestamp" => {
                    state.last_preserved_timestamp = Some(reader.number()?);
                }
                other => {
                    let found = format!("'{other}'");
                    let expected = "a field of CheckpointState, such as model_checkpoint_path";
                    return Err(Misread { line: reader.line, expected, found });
                }
            }
            let _ = reader.takes(',') || reader.takes(';');
        }
        Ok(state)
    }
}

fn quoted(path: &str) -> String {
    let mut text = String::from("\"");
    for character in path.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            other if other.is_ascii_control() => {
                let _ = write!(text, "\\{:03o}", u32::from(other));
            }
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

/// A reader of protobuf's text form, as far as a message of strings and numbers needs it.
struct Reader<'t> {
    rest: &'t str,
    line: usize,
}

impl<'t> Reader<'t> {
    /// Skips blanks and comments. Returns whether anything follows.
    fn skip_blanks(&mut self) -> bool {
        loop {
            let trimmed = self.rest.trim_start();
            let skipped = &self.rest[..self.rest.len() - trimmed.len()];
            self.line += skipped.matches('\n').count();
            self.rest = trimmed;
            if !trimmed.starts_with('#') {
                return !trimmed.is_empty();
            }
            self.rest = trimmed.find('\n').map_or("", |end| &trimmed[end..]);
        }
    }

    fn take(&mut self, length: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    fn word(&mut self) -> &'t str {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        self.take(length)
    }

    fn takes(&mut self, character: char) -> bool {
        self.skip_blanks();
        let found = self.rest.starts_with(character);
        if found {
            self.take(character.len_utf8());
        }
        found
    }

    fn misread(&self, expected: &'static str) -> Misread {
        let line = self.rest.lines().next().unwrap_or_default();
        let found = if line.is_empty() { "the end".to_owned() } else { format!("'{line}'") };
        Misread { line: self.line, expected, found }
    }

    fn number(&mut self) -> Result<f64, Misread> {
        self.skip_blanks();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
        let length = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let number = self.rest[..length].parse().map_err(|_| self.misread("a number"))?;
        self.take(length);
        Ok(number)
    }

    /// A string in quotes, or several, which are one.
    fn string(&mut self) -> Result<String, Misread> {
        let mut bytes = Vec::new();
        self.skip_blanks();
        if !self.rest.starts_with(['"', '\'']) {
            return Err(self.misread("a string in quotes"));
        }
        while self.rest.starts_with(['"', '\'']) {
            self.literal(&mut bytes)?;
            self.skip_blanks();
        }
        String::from_utf8(bytes).map_err(|_| self.misread("a string in UTF-8"))
    }

    fn literal(&mut self, bytes: &mut Vec<u8>) -> Result<(), Misread> {
        let unclosed = self.misread("a string that is closed on its line");
        let quote = self.take(1);
        loop {
            let Some(end) = self.rest.find([quote.as_bytes()[0] as char, '\\', '\n']) else {
                return Err(unclosed);
            };
            bytes.extend_from_slice(self.take(end).as_bytes());
            match self.take(1) {
                "\\" => self.escape(bytes)?,
                "\n" => return Err(unclosed),
                _ => return Ok(()),
            }
        }
    }

    /// What follows a backslash.
    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), Misread> {
        let expected = "an escape, such as \\n, \\\" or \\303";
        let failed = self.misread(expected);
        let Some(first) = self.rest.chars().next() else { return Err(failed) };
        if first.is_digit(8) {
            let length = self.rest.bytes().take(3).take_while(|b| (*b as char).is_digit(8)).count();
            let value = u8::from_str_radix(self.take(length), 8).map_err(|_| failed)?;
            bytes.push(value);
            return Ok(());
        }
        self.take(first.len_utf8());
        let plain = match first {
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            '"' | '\'' | '\\' | '?' => first as u8,
            'x' | 'X' => {
                let hex = |b: &u8| b.is_ascii_hexdigit();
                let length = self.rest.bytes().take(2).take_while(hex).count();
                u8::from_str_radix(self.take(length), 16).map_err(|_| failed)?
            }
            _ => return Err(failed),
        };
        bytes.push(plain);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text that TensorFlow 2.21 writes.
    const WRITTEN: &str = "model_checkpoint_path: \"model-2\"\nall_model_checkpoint_paths: \"model-1\"\n\
         all_model_checkpoint_paths: \"model-2\"\nall_model_checkpoint_timestamps: 1764236400.25\n\
         all_model_checkpoint_timestamps: 1764236401\nlast_preserved_timestamp: 1764236399.5\n";

    fn state() -> CheckpointState {
        CheckpointState {
            model_checkpoint_path: "model-2".to_owned(),
            all_model_checkpoint_paths: vec!["model-1".to_owned(), "model-2".to_owned()],
            all_model_checkpoint_timestamps: vec![1_764_236_400.25, 1_764_236_401.0],
            last_preserved_timestamp: Some(1_764_236_399.5),
        }
    }

    fn wrong(text: &str) -> (usize, String) {
        let misread = CheckpointState::parse(text).expect_err("it is wrong");
        (misread.line, format!("expected {}, found {}", misread.expected, misread.found))
    }

    #[test]
    fn the_text_is_as_tensorflow_writes_it() {
        assert_eq!(state().to_text(), WRITTEN);
        assert_eq!(CheckpointState::parse(WRITTEN).ok(), Some(state()));
    }

    #[test]
    fn any_path_survives() {
        for path in ["a \"b\"\\c\n\t\r\u{1}é", "", "été/模型"] {
            let state = CheckpointState { model_checkpoint_path: path.to_owned(), ..state() };
            assert_eq!(CheckpointState::parse(&state.to_text()).ok(), Some(state));
        }
        let octal = "# a comment\nmodel_checkpoint_path: \"\\303\\251\" 'x\\x41' ; ";
        let read = CheckpointState::parse(octal).ok().map(|state| state.model_checkpoint_path);
        assert_eq!(read.as_deref(), Some("éxA"));
    }

    #[test]
    fn an_error_names_the_line() {
        let told = wrong("model_checkpoint_path: \"a\"\nother: 1\n");
        assert_eq!(told.0, 2);
        assert!(told.1.contains("found 'other'"), "{told:?}");
        assert_eq!(wrong("model_checkpoint_path \"a\"").0, 1);
        assert!(wrong("model_checkpoint_path: a").1.contains("a string in quotes, found 'a'"));
        assert!(wrong("\n\nmodel_checkpoint_path: \"a").1.contains("closed on its line"));
        assert_eq!(wrong("\n\nmodel_checkpoint_path: \"a").0, 3);
        assert!(wrong("last_preserved_timestamp: soon").1.contains("a number, found 'soon'"));
        assert!(wrong("model_checkpoint_path: \"\\777\"").1.contains("an escape"));
        assert!(wrong("model_checkpoint_path: \"\\").1.contains("an escape"));
        assert!(wrong("model_checkpoint_path:").1.contains("found the end"));
    }
}
