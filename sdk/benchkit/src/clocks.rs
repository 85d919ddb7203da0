//! What the processors did, for this process and for others, as the system counts it.

use crate::record::Around;
use std::{fs, time::Instant};

/// Ticks of the system's counts in a second, whatever the kernel's own clock does.
const TICKS: f64 = 100.0;
/// Counts of ticks are taken at two times, and each may be one off.
const SLACK: u64 = 2;

/// Counts up to one point of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    at: Instant,
    /// Ticks in which processors did something, of all processes.
    busy: u64,
    /// Ticks that the hypervisor took.
    stolen: u64,
    /// Ticks of all processors, idle ones too.
    all: u64,
    /// Ticks of this process.
    own: u64,
    /// Nanoseconds for which threads of this process ran, and for which they waited for a processor.
    ran: u64,
    waited: u64,
}

impl Clocks {
    /// Up to now; `None` where the system does not tell.
    pub fn now() -> Option<Clocks> {
        let read = |path: &str| fs::read_to_string(path).ok();
        let [busy, stolen, all] = of_machine(&read("/proc/stat")?)?;
        let own = of_process(&read("/proc/self/stat")?)?;
        let (mut ran, mut waited) = (0, 0);
        for thread in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
            // A thread may end meanwhile, and a kernel may be built without these counts.
            let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            let [on, off] = of_thread(&text).unwrap_or_default();
            (ran, waited) = (ran + on, waited + off);
        }
        Some(Clocks { at: Instant::now(), busy, stolen, all, own, ran, waited })
    }

    /// What else was done since an earlier look.
    pub fn since(&self, before: &Clocks) -> Around {
        let seconds = self.at.duration_since(before.at).as_secs_f64();
        let less = u64::saturating_sub;
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let own = less(self.own, before.own);
        let others = less(less(self.busy, before.busy), own + SLACK);
        let waited = less(self.waited, before.waited);
        Around {
            others: if seconds > 0.0 { others as f64 / (TICKS * seconds) } else { 0.0 },
            waited: share(waited, waited + less(self.ran, before.ran)),
            stolen: share(
                less(less(self.stolen, before.stolen), SLACK),
                less(self.all, before.all),
            ),
        }
    }
}

/// Busy, stolen and all ticks: `cpu user nice system idle iowait irq softirq steal ...`, of which what a virtual machine
/// ran is part of `user`.
fn of_machine(stat: &str) -> Option<[u64; 3]> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|text| text.parse().ok()).collect();
    let [user, nice, system, idle, waiting, irq, soft, stolen, ..] = ticks[..] else { return None };
    let busy = user + nice + system + irq + soft;
    Some([busy, stolen, busy + idle + waiting + stolen])
}

/// Ticks of a process; its name, in parentheses, may hold anything.
fn of_process(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// Nanoseconds for which a thread ran and waited.
fn of_thread(schedstat: &str) -> Option<[u64; 2]> {
    let mut fields = schedstat.split_whitespace();
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some([next()?, next()?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_the_system_tells_is_read() {
        let stat = "cpu  100 5 20 1000 30 2 3 40 60 0\ncpu0 1 2 3 4\n";
        assert_eq!(of_machine(stat), Some([130, 40, 1200]));
        assert_eq!((of_machine("cpu  1 2 3\n"), of_machine("")), (None, None));
        let own = "17 (a) b (c) S 1 17 17 0 -1 4194560 1 0 0 0 70 30 9 9 20 0 1 0 5 6 7";
        assert_eq!(of_process(own), Some(100));
        assert_eq!(of_thread("5000 70 3\n"), Some([5000, 70]));
        assert_eq!((of_process("17"), of_thread("")), (None, None));
    }

    #[test]
    fn others_are_all_but_this_process() {
        let at = Instant::now();
        let before =
            Clocks { at, busy: 1000, stolen: 50, all: 9000, own: 10, ran: 1_000, waited: 500 };
        let now = Clocks {
            at: at + Duration::from_secs(2),
            busy: 1402,
            stolen: 72,
            all: 9400,
            own: 210,
            ran: 4_000,
            waited: 1_500,
        };
        let around = now.since(&before);
        assert_eq!((around.others, around.waited, around.stolen), (1.0, 0.25, 0.05));
        assert_eq!(before.since(&before), Around::default());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_is_none_of_the_others() {
        let Some(before) = Clocks::now() else { return };
        let end = Instant::now() + Duration::from_millis(300);
        while Instant::now() < end {
            std::hint::spin_loop();
        }
        let now = Clocks::now().unwrap();
        // Its own ticks are counted: one processor for 0.3 s, unless others took it.
        let own = (now.own - before.own) as f64 / TICKS;
        let share = now.since(&before);
        assert!(own + 0.3 * share.waited + 0.1 > 0.2, "{own} s, {share}");
    }
}
