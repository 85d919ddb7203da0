//! The limit on host memory of tensors, scratch buffers and strings together: a knob, and the
//! system's suggestion.

use super::HostMemory;
use tenon_framework::{knob::Knobs, register_knob};

register_knob!(
    "memory_limit_mb": INT = "-1",
    "MiB of host memory that tensors, scratch and strings may take together; -1 means nine tenths of what the system gives the process, 0 means no limit."
);

/// Sets the limit of the process's memory if the knob has one: that of the last runtime applies.
pub(crate) fn apply(knobs: &Knobs) {
    if let Some(limit) = knobs.int("host", "memory_limit_mb").and_then(|mb| u64::try_from(mb).ok())
    {
        HostMemory::shared().set_limit(limit.saturating_mul(1 << 20));
    }
}

/// Nine tenths of the least of the machine's memory, the limit of the process's control groups, and
/// its address space; 0, no limit, if all are unknown.
pub(super) fn of_system() -> u64 {
    system::bounds().into_iter().flatten().min().map_or(0, |least| least / 10 * 9)
}

#[cfg(target_os = "linux")]
mod system {
    use std::{
        fs,
        path::{Path, PathBuf},
    };

    /// These limits in bytes, as far as they are known.
    pub(super) fn bounds() -> [Option<u64>; 3] {
        let memory = fs::read_to_string("/proc/meminfo").ok();
        let groups = fs::read_to_string("/proc/self/cgroup").ok();
        [
            memory.and_then(|text| of_machine(&text)),
            groups.and_then(|text| of_groups(&text, Path::new("/sys/fs/cgroup"))),
            address_space(),
        ]
    }

    /// `MemTotal` of `/proc/meminfo`, which is in KiB.
    pub(super) fn of_machine(text: &str) -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kib.checked_mul(1024)
    }

    /// The least limit of the groups of a process, and of the groups above them. A line of
    /// `/proc/self/cgroup` is `number:controllers:path`, without controllers in version 2, which
    /// has one tree for all.
    pub(super) fn of_groups(text: &str, root: &Path) -> Option<u64> {
        let limits = text.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let (root, file) = match controllers {
                "" => (root.to_owned(), "memory.max"),
                list if list.split(',').any(|one| one == "memory") => {
                    (root.join("memory"), "memory.limit_in_bytes")
                }
                _ => return None,
            };
            least_above(&root, path, file)
        });
        limits.min()
    }

    fn least_above(root: &Path, path: &str, file: &str) -> Option<u64> {
        let mut folder: PathBuf = root.join(path.trim_start_matches('/'));
        let mut least = None;
        while folder.starts_with(root) {
            // Without a limit the file contains `max`, or does not exist.
            let text = fs::read_to_string(folder.join(file)).ok();
            let limit = text.and_then(|text| text.trim().parse::<u64>().ok());
            least = [least, limit].into_iter().flatten().min();
            if !folder.pop() {
                break;
            }
        }
        least
    }

    fn address_space() -> Option<u64> {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the result pointer is valid for writes.
        let told = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) } == 0;
        (told && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn bounds() -> [Option<u64>; 3] {
        [None; 3]
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::system::{of_groups, of_machine};
    use std::fs;

    #[test]
    fn the_machine_s_memory_is_read_in_kib() {
        let text = "MemFree:  12 kB\nMemTotal:       24593836 kB\n";
        assert_eq!(of_machine(text), Some(24_593_836 * 1024));
        assert_eq!(of_machine("MemTotal: many kB\n"), None);
        assert_eq!(of_machine(""), None);
    }

    #[test]
    fn the_least_limit_of_a_group_and_those_around_it_counts() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("outer/inner");
        fs::create_dir_all(&inner).unwrap();
        let groups = "0::/outer/inner\n";
        assert_eq!(of_groups(groups, root.path()), None);
        fs::write(root.path().join("outer/memory.max"), "1000\n").unwrap();
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        assert_eq!(of_groups(groups, root.path()), Some(1000));
        fs::write(inner.join("memory.max"), "600\n").unwrap();
        assert_eq!(of_groups(groups, root.path()), Some(600));
        let first = root.path().join("memory/x");
        fs::create_dir_all(&first).unwrap();
        fs::write(first.join("memory.limit_in_bytes"), "50\n").unwrap();
        let both = "4:cpu,memory:/x\n3:cpuset:/x\n0::/outer\n";
        assert_eq!(of_groups(both, root.path()), Some(50));
        assert_eq!(of_groups("nonsense\n", root.path()), None);
    }
}
