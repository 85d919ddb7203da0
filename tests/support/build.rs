//! Building files once, for the first test that asks.

use std::{
    env,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::Command,
    time::SystemTime,
};

/// The root of the repository.
pub fn repository() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().map_or_else(|| tests.to_owned(), Path::to_owned)
}

/// The folder with the libraries that this test's dependencies are built into: `target/<profile>/deps`.
///
/// # Panics
/// When the running program is not where cargo puts tests.
pub fn deps() -> PathBuf {
    let program = env::current_exe().expect("a program knows its own path");
    let folder = program.parent().expect("a program lies in a folder");
    // Examples and documentation tests lie elsewhere below the profile's folder.
    match folder.file_name().is_some_and(|name| name == "deps") {
        true => folder.to_owned(),
        false => folder.join("deps"),
    }
}

/// A folder of our own below the one that cargo builds into.
///
/// # Panics
/// When it cannot be made.
pub fn output(name: &str) -> PathBuf {
    let deps = deps();
    let target = deps.ancestors().nth(2).expect("deps lies two levels below the target folder");
    let folder = target.join("tenon-tests").join(name);
    fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    folder
}

/// The folder that cargo builds other workspaces into which need the SDK: that of this workspace, where most of what the
/// SDK needs is there already. Where the flags of the compiler are not the usual ones (a sanitiser's), it is a folder of
/// their own, since those workspaces are built without the flags.
///
/// # Panics
/// When it cannot be made.
pub fn target_of_others() -> PathBuf {
    let flags = ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"];
    let deps = deps();
    match deps.ancestors().nth(2).filter(|_| flags.iter().all(|name| env::var_os(name).is_none())) {
        Some(target) => target.to_owned(),
        None => output("others"),
    }
}

/// Runs `body` while no other process or thread does so under the same name.
///
/// # Panics
/// When the file of the lock cannot be made or locked.
pub fn locked<R>(name: &str, body: impl FnOnce() -> R) -> R {
    let path = output("").join(format!("{name}.lock"));
    let held = File::create(&path).and_then(|file| file.lock().map(|()| file));
    let held = held.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let result = body();
    drop(held);
    result
}

/// Runs a command to its end.
///
/// # Panics
/// When it cannot be started or fails, with what it said.
pub fn run(command: &mut Command) {
    let shown = format!("{command:?}");
    let done = command.output().unwrap_or_else(|e| panic!("{shown}: {e}"));
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{shown}: {}\n{out}{err}", done.status);
}

fn changed(path: &Path) -> io::Result<SystemTime> {
    fs::metadata(path)?.modified()
}

/// Whether `made` is there and no older than any of `sources`.
pub fn is_current(made: &Path, sources: &[PathBuf]) -> bool {
    let Ok(at) = changed(made) else { return false };
    sources.iter().all(|source| changed(source).is_ok_and(|time| time <= at))
}

/// The files in a folder whose names end so, sorted.
///
/// # Panics
/// When the folder cannot be read.
pub fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = listed
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| {
            let name = path.to_string_lossy();
            path.is_file() && endings.iter().any(|ending| name.ends_with(ending))
        })
        .collect();
    files.sort();
    files
}

/// The folder with `tenon.h`.
pub fn include() -> PathBuf {
    repository().join("core/abi/include")
}

/// The folder with `tenon_plugin.h`.
pub fn author() -> PathBuf {
    repository().join("sdk/c")
}

/// The headers for authors in C and C++.
///
/// # Panics
/// When their folder cannot be read.
pub fn author_headers() -> Vec<PathBuf> {
    let mut headers = files(&author(), &[".h", ".hpp"]);
    headers.extend(files(&author().join("tenon"), &[".hpp"]));
    headers
}

/// Compiles C sources to a library, unless it is there and current. `cc`, or what `CC` names, compiles.
///
/// # Panics
/// When the compiler is missing or refuses.
pub fn c_library(name: &str, sources: &[PathBuf], headers: &[PathBuf]) -> PathBuf {
    let flags = ["-fPIC", "-shared", "-fvisibility=hidden"];
    compile(&C, &format!("lib{name}.so"), sources, headers, &flags)
}

/// As [`c_library`], of C++ sources, with the visibility of symbols that compilers give by themselves. `c++`, or what
/// `CXX` names, compiles.
///
/// # Panics
/// As [`c_library`].
pub fn cpp_library(name: &str, sources: &[PathBuf], headers: &[PathBuf]) -> PathBuf {
    compile(&CPP, &format!("lib{name}.so"), sources, headers, &["-fPIC", "-shared"])
}

/// A language: the variable that names its compiler, the usual one, and the standard.
struct Compiled {
    variable: &'static str,
    usual: &'static str,
    standard: &'static str,
}

const C: Compiled = Compiled { variable: "CC", usual: "cc", standard: "-std=c11" };
const CPP: Compiled = Compiled { variable: "CXX", usual: "c++", standard: "-std=c++20" };

/// As [`c_library`], to a program.
///
/// # Panics
/// As [`c_library`].
pub fn c_program(name: &str, sources: &[PathBuf], headers: &[PathBuf]) -> PathBuf {
    compile(&C, name, sources, headers, &[])
}

fn compile(
    language: &Compiled,
    name: &str,
    sources: &[PathBuf],
    headers: &[PathBuf],
    flags: &[&str],
) -> PathBuf {
    let made = output("c").join(name);
    let mut all: Vec<PathBuf> = sources.to_vec();
    all.extend_from_slice(headers);
    all.push(include().join("tenon.h"));
    all.extend(author_headers());
    locked(name, || {
        if !is_current(&made, &all) {
            // Written beside it and moved into place: who has the old one open keeps it.
            let fresh = made.with_extension("new");
            let compiler = env::var_os(language.variable).unwrap_or_else(|| language.usual.into());
            run(Command::new(compiler)
                .args([language.standard, "-Wall", "-Wextra", "-Werror", "-O1", "-g"])
                .args(flags)
                .arg("-I")
                .arg(include())
                .arg("-I")
                .arg(author())
                .args(sources)
                .arg("-o")
                .arg(&fresh)
                .arg("-lpthread"));
            fs::rename(&fresh, &made).unwrap_or_else(|e| panic!("{}: {e}", made.display()));
        }
    });
    made
}
