//! Guides that are followed to the letter: their files are written, their commands run, their output compared.
//!
//! A line `<!-- MARK -->` right before a fenced block says what the block is:
//! - `file: PATH`: the whole of a file.
//! - `run`: commands for `bash`, which must succeed; `run: fails`: which must not; `run: needs PROGRAM`: where
//!   that is installed.
//! - `excerpt: PATH`: lines of a file of the repository, in the form of `prints`.
//! - `prints`: lines that the last commands printed, in this order; `…` within a line stands for any text, a
//!   line of `…` alone for any lines.
//! - `skip: REASON`: not followed.
//!
//! A block without a mark is an error, so that every block of code in a guide is tried.

use crate::build;
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// What a block is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// The whole of a file.
    File(PathBuf),
    /// Commands.
    Run {
        /// Whether they are to succeed.
        succeeds: bool,
        /// The program without which they are not run.
        needs: Option<String>,
    },
    /// Lines of a file of the repository.
    Excerpt(PathBuf),
    /// What the last commands printed.
    Prints,
    /// Not followed, and why.
    Skip(String),
}

/// A fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// What it is.
    pub mark: Mark,
    /// Its lines.
    pub text: String,
    /// Line of the fence, from 1.
    pub line: usize,
}

/// The blocks of a guide.
///
/// # Errors
/// A block without a mark, a mark without a block, a fence that is not closed.
pub fn blocks(guide: &str) -> Result<Vec<Block>, String> {
    let mut found = Vec::new();
    let mut mark: Option<(usize, Mark)> = None;
    let mut lines = guide.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let line = line.trim();
        if let Some(text) = comment(line) {
            mark = read_mark(text).map(|mark| (at, mark));
        } else if line.starts_with("```") {
            let Some((_, mark)) = mark.take() else {
                return Err(format!("line {}: a block without a mark", at + 1));
            };
            let text: Vec<&str> = lines
                .by_ref()
                .map(|(_, line)| line)
                .take_while(|line| line.trim() != "```")
                .collect();
            found.push(Block { mark, text: text.join("\n") + "\n", line: at + 1 });
        } else if let Some((at, _)) = mark.take_if(|_| !line.is_empty()) {
            return Err(format!("line {}: a mark without a block", at + 1));
        }
    }
    Ok(found)
}

fn comment(line: &str) -> Option<&str> {
    Some(line.strip_prefix("<!--")?.strip_suffix("-->")?.trim())
}

fn read_mark(text: &str) -> Option<Mark> {
    let (word, rest) = text.split_once(':').map_or((text, ""), |(word, rest)| (word, rest.trim()));
    Some(match (word, rest) {
        ("file", path) => Mark::File(PathBuf::from(path)),
        ("run", "") => Mark::Run { succeeds: true, needs: None },
        ("run", "fails") => Mark::Run { succeeds: false, needs: None },
        ("run", rest) => {
            let needs = Some(rest.strip_prefix("needs ")?.trim().to_owned());
            Mark::Run { succeeds: true, needs }
        }
        ("excerpt", path) if !path.is_empty() => Mark::Excerpt(PathBuf::from(path)),
        ("prints", "") => Mark::Prints,
        ("skip", reason) if !reason.is_empty() => Mark::Skip(reason.to_owned()),
        _ => return None,
    })
}

/// Follows a guide in a folder, with these variables set for its commands.
///
/// # Errors
/// The line of the block that did not do what it says, with what it printed.
pub fn follow(guide: &str, folder: &Path, variables: &[(&str, String)]) -> Result<usize, String> {
    let blocks = blocks(guide)?;
    // Nothing where the commands were not run.
    let mut printed = Some(String::new());
    for block in &blocks {
        let failed = |problem: String| format!("line {}: {problem}", block.line);
        match &block.mark {
            Mark::File(path) => write(&folder.join(path), &block.text).map_err(failed)?,
            Mark::Run { needs: Some(program), .. } if !is_installed(program) => {
                eprintln!("line {}: skipped, for {program} is not installed", block.line);
                printed = None;
            }
            Mark::Run { succeeds, .. } => {
                let (success, output) = run(&block.text, folder, variables).map_err(failed)?;
                if success != *succeeds {
                    let wanted = if *succeeds { "succeed" } else { "fail" };
                    return Err(failed(format!("was to {wanted}\n{}{output}", block.text)));
                }
                printed = Some(output);
            }
            Mark::Prints => {
                printed
                    .as_ref()
                    .map_or(Ok(()), |printed| prints(&block.text, printed))
                    .map_err(failed)?;
            }
            Mark::Excerpt(path) => excerpt(&block.text, path).map_err(failed)?,
            Mark::Skip(_) => {}
        }
    }
    Ok(blocks.len())
}

fn is_installed(program: &str) -> bool {
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// Whether these are lines of a file of the repository.
fn excerpt(expected: &str, path: &Path) -> Result<(), String> {
    let whole = fs::read_to_string(build::repository().join(path));
    prints(expected, &whole.map_err(|error| format!("{}: {error}", path.display()))?)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let shown = |error: std::io::Error| format!("{}: {error}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(shown)?;
    }
    fs::write(path, text).map_err(shown)
}

fn run(
    script: &str,
    folder: &Path,
    variables: &[(&str, String)],
) -> Result<(bool, String), String> {
    let mut bash = Command::new("bash");
    // Both streams in one, as a terminal shows them.
    bash.args(["-euo", "pipefail", "-c", &format!("exec 2>&1\n{script}")]).current_dir(folder);
    // Built where the guide says, whatever the folder of these tests.
    bash.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
    bash.envs(variables.iter().map(|(name, value)| (name, value)));
    let done = bash.output().map_err(|error| format!("bash: {error}"))?;
    Ok((done.status.success(), String::from_utf8_lossy(&done.stdout).into_owned()))
}

/// Whether these lines were printed in this order.
fn prints(expected: &str, printed: &str) -> Result<(), String> {
    let mut rest = printed.lines();
    let mut skips = true;
    for wanted in expected.lines() {
        if wanted.trim() == "…" {
            skips = true;
            continue;
        }
        let found = if skips {
            rest.any(|line| like(wanted, line))
        } else {
            rest.next().is_some_and(|line| like(wanted, line))
        };
        if !found {
            return Err(format!("expected the line\n{wanted}\nin\n{printed}"));
        }
        skips = false;
    }
    Ok(())
}

/// Whether a line matches a pattern in which `…` stands for any text. Spaces count once, and those at the
/// end do not.
fn like(pattern: &str, line: &str) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (pattern, line) = (plain(pattern), plain(line));
    let mut parts = pattern.split('…');
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_marks() {
        let guide = "a\n<!-- file: a/b.rs -->\n```rust\nfn f() {}\n```\n\n<!-- run: fails -->\n\n```sh\nfalse\n```\n";
        let found = blocks(guide).unwrap();
        assert_eq!(found[0].mark, Mark::File("a/b.rs".into()));
        assert_eq!((found[0].text.as_str(), found[0].line), ("fn f() {}\n", 3));
        assert_eq!(found[1].mark, Mark::Run { succeeds: false, needs: None });
        assert_eq!(blocks("```\nx\n```\n").unwrap_err(), "line 1: a block without a mark");
        let lost = blocks("<!-- run -->\ntext\n").unwrap_err();
        assert_eq!(lost, "line 1: a mark without a block");
    }

    #[test]
    fn lines_follow_patterns() {
        assert!(
            like("a … c", "a b  c") && like("a…", "abc") && like("…c", "abc") && like("a", "a")
        );
        assert!(!like("a…d", "abc") && !like("a", "ab") && !like("b…", "abc"));
        assert!(prints("one\n…\nthree\n", "zero\none\ntwo\nthree\n").is_ok());
        assert!(prints("one\nthree\n", "one\ntwo\nthree\n").is_err());
    }

    #[test]
    fn an_excerpt_is_of_the_file() {
        let guide =
            |line| format!("<!-- excerpt: tests/Cargo.toml -->\n```\n[package]\n{line}\n```\n");
        let folder = Path::new(".");
        assert_eq!(follow(&guide("name = \"tenon-tests\""), folder, &[]), Ok(1));
        assert!(follow(&guide("name = \"other\""), folder, &[]).is_err());
    }

    #[test]
    fn what_is_not_installed_is_not_run() {
        let guide =
            "<!-- run: needs no-such-program -->\n```\nfalse\n```\n<!-- prints -->\n```\nx\n```\n";
        assert_eq!(follow(guide, Path::new("."), &[]), Ok(2));
        let sh = guide.replace("no-such-program", "bash");
        assert!(follow(&sh, Path::new("."), &[]).is_err());
    }

    #[test]
    fn a_guide_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let guide = "<!-- file: x/y -->\n```\nhello\n```\n<!-- run -->\n```sh\ncat x/y; echo $WHO\n```\n\
                     <!-- prints -->\n```\nhello\nyou\n```\n";
        assert_eq!(follow(guide, folder.path(), &[("WHO", "you".to_owned())]), Ok(3));
        let wrong = guide.replace("\nyou\n", "\nme\n");
        let told = follow(&wrong, folder.path(), &[("WHO", "you".to_owned())]).unwrap_err();
        assert!(told.starts_with("line 10: expected the line\nme\n"), "{told}");
    }
}
