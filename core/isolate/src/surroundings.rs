//! What a worker's process inherits from the host: its three standard descriptors, and the
//! environment variables that a program needs to run in this place.
//!
//! A plugin must not see an embedder's sockets, files and secrets, and a descriptor that a plugin
//! holds keeps a connection open that the host has closed.

use std::{env, ffi::OsString, io, os::unix::process::CommandExt, process::Command};

/// Variables that a worker receives. A `*` at the end matches any suffix.
const USUAL: &[&str] = &[
    // Where and as whom the program runs.
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_*",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    // How libraries are found, and how the C library behaves.
    "LD_*",
    "GLIBC_TUNABLES",
    "MALLOC_*",
    // How many threads linear algebra libraries use.
    "OMP_*",
    "GOMP_*",
    "KMP_*",
    "OPENBLAS_*",
    "MKL_*",
    "BLIS_*",
    // How faults are reported.
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "RUST_MIN_STACK",
    "ASAN_OPTIONS",
    "LSAN_OPTIONS",
    "TSAN_OPTIONS",
    "MSAN_OPTIONS",
    "UBSAN_OPTIONS",
    "LLVM_PROFILE_FILE",
    // Settings of this project.
    "TENON_*",
];

/// Whether a variable is on the list.
fn is_given(name: &str, more: &[String]) -> bool {
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name == pattern,
    };
    USUAL.iter().copied().chain(more.iter().map(String::as_str)).any(fits)
}

/// Makes a command run with these surroundings; `more` names further variables.
pub(super) fn confine(command: &mut Command, more: &[String]) {
    confine_with(command, env::vars_os(), more, close_all);
}

fn confine_with(
    command: &mut Command,
    all: impl Iterator<Item = (OsString, OsString)>,
    more: &[String],
    close: fn() -> io::Result<()>,
) {
    let given = all.filter(|(name, _)| name.to_str().is_some_and(|name| is_given(name, more)));
    command.env_clear().envs(given);
    // SAFETY: between `fork` and `exec` it only makes system calls, which allocate nothing and take
    // no lock.
    unsafe { command.pre_exec(close) };
}

/// The first descriptor after the standard ones.
const FIRST: u32 = 3;

/// Marks every descriptor but the standard ones as closed by `exec`; until then the starting
/// process needs its own.
fn close_all() -> io::Result<()> {
    const ON_EXEC: u32 = 1 << 2;
    // SAFETY: it marks descriptors of this process, which is about to run another program.
    let done = unsafe { libc::syscall(libc::SYS_close_range, FIRST, u32::MAX, ON_EXEC) };
    // Linux before 5.11 does not have this call, and a filter of system calls may refuse it.
    if done == 0 { Ok(()) } else { close_each() }
}

/// Like [`close_all`], one by one: a descriptor above a limit that was lowered since stays.
fn close_each() -> io::Result<()> {
    const MOST: u64 = 1 << 20;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer to the limit is valid for writes; marking a number that is not a
    // descriptor fails and changes nothing.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return Err(io::Error::last_os_error());
        }
        for descriptor in FIRST as i32..limit.rlim_cur.min(MOST) as i32 {
            libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::{FdFlags, fcntl_setfd};
    use std::{fs::File, os::fd::AsRawFd};

    fn output_of(script: &str, close: fn() -> io::Result<()>) -> String {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        let all = [("PATH", "/usr/bin:/bin"), ("SECRET", "x"), ("LC_ALL", "C"), ("MINE_1", "y")];
        let all = all.into_iter().map(|(name, value)| (name.into(), value.into()));
        confine_with(&mut command, all, &["MINE_*".to_owned()], close);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn descriptors_without_the_mark_do_not_reach_a_worker() {
        let inherited = File::open("/dev/null").unwrap();
        fcntl_setfd(&inherited, FdFlags::empty()).unwrap();
        let script = format!("test -e /proc/$$/fd/{} && echo inherited", inherited.as_raw_fd());
        let script = format!("{script}; true");
        assert_eq!(output_of(&script, || Ok(())), "inherited\n", "else this shows nothing");
        assert_eq!(output_of(&script, close_all), "");
        assert_eq!(output_of(&script, close_each), "");
    }

    #[test]
    fn secrets_of_the_environment_do_not_reach_a_worker() {
        let names = output_of("env", close_all);
        let has = |name: &str| names.lines().any(|line| line.starts_with(&format!("{name}=")));
        assert!(has("PATH") && has("LC_ALL") && has("MINE_1") && !has("SECRET"), "{names}");
    }

    #[test]
    fn a_star_stands_for_any_rest_and_nothing_else_does() {
        let all = ["*".to_owned()];
        assert!(is_given("SECRET", &all) && !is_given("SECRET", &[]));
        assert!(!is_given("PATHS", &[]) && !is_given("XPATH", &[]) && is_given("TENON_X", &[]));
        assert!(!is_given("SECRET", &["SEC".to_owned()]));
    }
}
