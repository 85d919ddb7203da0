//! The machine that is measured on, and what disturbs it.

use crate::record::Machine;
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    thread::available_parallelism,
    time::{SystemTime, UNIX_EPOCH},
};
use tenon_framework::registry::FeatureSet;

/// What can be read of this machine. What the system does not tell is left out.
pub fn machine(features: &FeatureSet) -> Machine {
    let text = |path: &str| fs::read_to_string(path).ok();
    let cpuinfo = text("/proc/cpuinfo").unwrap_or_default();
    let status = text("/proc/self/status").unwrap_or_default();
    let governor = text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    Machine {
        cpu: cpu_model(&cpuinfo),
        features: features.iter().map(str::to_owned).collect(),
        cores: processors(&cpuinfo).unwrap_or_else(usable),
        allowed: field(&status, "Cpus_allowed_list").map(str::to_owned),
        system: system(),
        governor: governor.map(|name| name.trim().to_owned()),
        hypervisor: field(&cpuinfo, "flags")
            .map(|flags| flags.split(' ').any(|f| f == "hypervisor")),
        load: text("/proc/loadavg").and_then(|line| line.split(' ').next()?.parse().ok()),
    }
}

fn usable() -> u32 {
    available_parallelism().map_or(1, |count| count.get() as u32)
}

/// The value of a line `name : value`.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim())
    })
}

fn processors(cpuinfo: &str) -> Option<u32> {
    let count = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    (count > 0).then_some(count as u32)
}

/// The CPU's name, with family, model and stepping: virtual machines give the same name to many.
fn cpu_model(cpuinfo: &str) -> String {
    let name = field(cpuinfo, "model name").or_else(|| field(cpuinfo, "CPU part"));
    let Some(name) = name else { return std::env::consts::ARCH.to_owned() };
    let number = |key: &str| field(cpuinfo, key).unwrap_or("?");
    format!("{name} ({}/{}/{})", number("cpu family"), number("model"), number("stepping"))
}

fn system() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{} {}", std::env::consts::OS, release.trim()).trim().to_owned()
}

/// Sizes of the caches of the first processor, from the smallest level up; instruction caches are left out.
pub fn caches() -> Vec<(String, u64)> {
    caches_in(Path::new("/sys/devices/system/cpu/cpu0/cache"))
}

fn caches_in(folder: &Path) -> Vec<(String, u64)> {
    let mut found: Vec<(String, u64)> = (0..8)
        .filter_map(|index| {
            let read =
                |name: &str| fs::read_to_string(folder.join(format!("index{index}/{name}"))).ok();
            if read("type")?.trim() == "Instruction" {
                return None;
            }
            Some((format!("L{}", read("level")?.trim()), size(read("size")?.trim())?))
        })
        .collect();
    found.sort();
    found
}

/// `48K`, `2048K`, `260M`.
fn size(text: &str) -> Option<u64> {
    let (digits, factor) = match text.strip_suffix('K') {
        Some(digits) => (digits, 1 << 10),
        None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1 << 20)),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// Bytes of memory that are free for use.
pub fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kib: u64 = field(&text, "MemAvailable")?.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// What took the processor away from this process so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Disturbance {
    /// Times that the system gave the processor to another.
    pub switches: u64,
    /// Hundredths of a second that the hypervisor gave all processors of this machine to another.
    pub stolen: u64,
}

impl Disturbance {
    /// Up to now.
    pub fn so_far() -> Disturbance {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let switches =
            field(&status, "nonvoluntary_ctxt_switches").and_then(|text| text.parse().ok());
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        // cpu user nice system idle iowait irq softirq steal
        let stolen =
            stat.lines().next().and_then(|line| line.split_whitespace().nth(8)?.parse().ok());
        Disturbance { switches: switches.unwrap_or(0), stolen: stolen.unwrap_or(0) }
    }

    /// Since an earlier look.
    pub fn since(self, before: Disturbance) -> Disturbance {
        Disturbance {
            switches: self.switches.saturating_sub(before.switches),
            stolen: self.stolen.saturating_sub(before.stolen),
        }
    }
}

/// What the user can do for steadier figures.
pub fn advice(machine: &Machine, threads: u32, disturbed: Disturbance) -> Vec<String> {
    let mut advice = Vec::new();
    let last = machine.cores.max(1).min(threads.max(1)) - 1;
    let list = if last == 0 { "0".to_owned() } else { format!("0-{last}") };
    let pinned = machine.allowed.as_deref().and_then(processors_in).is_some_and(|n| n <= threads);
    if !pinned && machine.cores > threads {
        advice
            .push(format!("not pinned: `taskset -c {list} tenon bench ...` keeps it on its cores"));
    }
    if let Some(load) = machine.load.filter(|load| *load > 0.5) {
        let others = format!(
            "the machine was busy before the run (load {load:.1} on {} cores)",
            machine.cores
        );
        advice.push(format!("{others}: stop other work, or trust ratios only"));
    }
    if let Some(governor) = machine.governor.as_ref().filter(|name| *name != "performance") {
        advice.push(format!(
            "the frequency governor is '{governor}': `cpupower frequency-set -g performance` keeps the clock steady"
        ));
    }
    if disturbed.switches > 200 || disturbed.stolen > 20 {
        advice.push(format!(
            "the processor was taken away {} times by other processes, and for {} ms by the hypervisor",
            disturbed.switches,
            disturbed.stolen * 10
        ));
    }
    advice
}

/// Processors in a list such as `0-1,4`.
fn processors_in(list: &str) -> Option<u32> {
    let count = |part: &str| match part.split_once('-') {
        Some((first, last)) => {
            last.parse::<u32>().ok()?.checked_sub(first.parse().ok()?)?.checked_add(1)
        }
        None => part.parse::<u32>().ok().map(|_| 1),
    };
    list.split(',').map(count).sum()
}

/// The commit of the git repository that this process was started in, with a `+` where files differ from it: builds of a
/// plugin are timed in its folder. `None` without a repository or git.
pub fn commit() -> Option<String> {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).stdin(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let differs = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if differs.is_empty() { commit } else { format!("{commit}+") })
}

/// Today in UTC, as `2026-11-21`.
pub fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = civil((seconds / 86_400) as i64);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The date this many days after 1970-01-01 (Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPUINFO: &str = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: A CPU @ 2GHz\n\
                           stepping\t: 1\nflags\t\t: fpu hypervisor avx2\n\nprocessor\t: 1\n";

    #[test]
    fn a_cpu_is_known_by_name_and_numbers() {
        assert_eq!(cpu_model(CPUINFO), "A CPU @ 2GHz (25/17/1)");
        assert_eq!(cpu_model(""), std::env::consts::ARCH);
        assert_eq!(processors(CPUINFO), Some(2));
    }

    #[test]
    fn caches_are_read_with_their_sizes() {
        let folder = tempfile::tempdir().unwrap();
        for (index, level, kind, size) in
            [(0, 1, "Data", "48K"), (1, 1, "Instruction", "32K"), (2, 2, "Unified", "2M")]
        {
            let folder = folder.path().join(format!("index{index}"));
            fs::create_dir(&folder).unwrap();
            for (name, text) in
                [("level", level.to_string()), ("type", kind.into()), ("size", size.into())]
            {
                fs::write(folder.join(name), text + "\n").unwrap();
            }
        }
        let expected = [("L1".to_owned(), 48 << 10), ("L2".to_owned(), 2 << 20)];
        assert_eq!(caches_in(folder.path()), expected);
        assert_eq!((size("12"), size("x"), size("99999999999999999999M")), (Some(12), None, None));
    }

    #[test]
    fn days_are_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(19_782), (2024, 2, 29));
        assert_eq!(civil(20_778), (2026, 11, 21));
        assert_eq!(today().len(), 10);
    }

    #[test]
    fn advice_is_given_for_what_can_be_changed() {
        let quiet = Machine {
            cores: 2,
            allowed: Some("0".into()),
            governor: Some("performance".into()),
            load: Some(0.1),
            ..Machine::default()
        };
        let none = Disturbance::default();
        assert_eq!(advice(&quiet, 1, none), [""; 0]);
        let loud = Machine {
            allowed: Some("0-1".into()),
            governor: Some("powersave".into()),
            load: Some(3.25),
            ..quiet
        };
        let given = advice(&loud, 1, Disturbance { switches: 900, stolen: 1 });
        assert_eq!(given.len(), 4);
        assert!(given[0].contains("taskset -c 0 ") && given[1].contains("load 3.2"), "{given:?}");
        assert!(advice(&loud, 2, none)[0].contains("busy"), "two threads use both cores");
        assert_eq!((processors_in("0-3,8"), processors_in("x")), (Some(5), None));
    }
}
