//! The memory that the program may take: a ceiling for the process, by default half of what the machine allows it.
//!
//! Memory is the process's, so its ceiling is too: it is the one setting of this crate that is not passed along. Runs look at it
//! between batches of events ([`crate::run::observe`]), readers of files while they read ([`crate::input`]). Whoever finds it
//! reached ends with a message; the results of a run never depend on it. Without [`limit_to`] there is no ceiling, and on
//! systems without `/proc` it is not enforced.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static CEILING: AtomicU64 = AtomicU64::new(u64::MAX);
static REACHED: AtomicBool = AtomicBool::new(false);

/// What was resident after [`reached`] last gave memory back (bytes).
static GIVEN_BACK: AtomicU64 = AtomicU64::new(0);

/// Sets the ceiling (bytes) for the rest of the process.
pub fn limit_to(bytes: u64) {
    CEILING.store(bytes, Ordering::Relaxed);
}

/// The ceiling (bytes); `u64::MAX` without one.
pub fn ceiling() -> u64 {
    CEILING.load(Ordering::Relaxed)
}

/// Whether the process has come so near to its ceiling that what grows must stop. It stays so.
pub fn reached() -> bool {
    let ceiling = ceiling();
    if ceiling == u64::MAX {
        return false;
    }
    if REACHED.load(Ordering::Relaxed) {
        return true;
    }
    // Between two looks memory may grow by what a batch of events needs.
    let near = |bytes: u64| bytes > ceiling / 8 * 7;
    let Some(bytes) = resident().filter(|&bytes| near(bytes)) else {
        return false;
    };
    // The allocator may hold what is free: that takes as long as it holds much, so not at every look.
    if bytes > GIVEN_BACK.load(Ordering::Relaxed).saturating_add(ceiling / 16) {
        give_back();
        let left = resident().unwrap_or(bytes);
        GIVEN_BACK.store(left, Ordering::Relaxed);
        if !near(left) {
            return false;
        }
    }
    REACHED.store(true, Ordering::Relaxed);
    true
}

/// Gives what the allocator holds without need back to the system, where there is a way. After results that were many have been dropped.
pub fn give_back() {
    #[cfg(target_os = "linux")]
    fleetfoot_live::give_back_memory();
}

/// Whether [`reached`] has been true.
pub fn was_reached() -> bool {
    REACHED.load(Ordering::Relaxed)
}

/// Begins anew: [`reached`] is not what it was for work that has ended. For a process that does other things between its runs.
pub fn look_again() {
    REACHED.store(false, Ordering::Relaxed);
    GIVEN_BACK.store(0, Ordering::Relaxed);
}

/// Memory of a page's engine (bytes); it never gets less.
#[cfg(target_arch = "wasm32")]
pub fn resident() -> Option<u64> {
    Some(core::arch::wasm32::memory_size::<0>() as u64 * 65536)
}

/// Memory of this process that is in RAM (bytes), where the system reports it.
#[cfg(not(target_arch = "wasm32"))]
pub fn resident() -> Option<u64> {
    use std::io::Read as _;
    let mut text = [0; 4096];
    let length = std::fs::File::open("/proc/self/status")
        .ok()?
        .read(&mut text)
        .ok()?;
    kilobytes(std::str::from_utf8(&text[..length]).ok()?, "VmRSS:")
}

/// Half of the memory that machine, control groups and limits of the process allow (bytes); 4 GiB where the system does
/// not report it.
pub fn default_ceiling() -> u64 {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let machine = read(Path::new("/proc/meminfo")).and_then(|text| kilobytes(&text, "MemTotal:"));
    let space = read(Path::new("/proc/self/limits")).and_then(|text| address_space(&text));
    let groups = read(Path::new("/proc/self/cgroup"))
        .map_or_else(Vec::new, |text| limit_files(&text))
        .into_iter()
        .filter_map(|path| read(&path)?.trim().parse().ok());
    let allowed = groups.chain(machine).chain(space).min();
    allowed.map_or(4 << 30, |bytes| bytes / 2)
}

/// The value in bytes of the line of a file under `/proc` that begins with `key` and counts in kB.
fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let number: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    number.checked_mul(1024)
}

/// The soft limit of the address space in `/proc/self/limits` (bytes).
fn address_space(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The files that may hold a limit for a process whose `/proc/self/cgroup` is `text`: of its control groups and of those
/// above them, version 2 and 1.
fn limit_files(text: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let inner = Path::new(path.trim_start_matches('/'));
        files.extend(
            inner
                .ancestors()
                .map(|above| Path::new(root).join(above).join(file)),
        );
    }
    files
}

/// A number of bytes for people: `1.5 GB`.
pub fn shown(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..1_000_000 => (1e3, "kB"),
        1_000_000..1_000_000_000 => (1e6, "MB"),
        _ => (1e9, "GB"),
    };
    let value = bytes as f64 / unit;
    match value < 10.0 {
        true => format!("{value:.1} {name}"),
        false => format!("{value:.0} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{address_space, kilobytes, limit_files, resident, shown};
    use std::path::Path;

    #[test]
    fn limits_are_found_where_the_system_states_them() {
        let status = "Name:\tfleetfoot\nVmHWM:\t   9000 kB\nVmRSS:\t   8192 kB\nThreads:\t1\n";
        assert_eq!(kilobytes(status, "VmRSS:"), Some(8 << 20));
        assert_eq!(kilobytes(status, "VmSwap:"), None);
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max address space         2147483648           unlimited            bytes     \n";
        assert_eq!(address_space(limits), Some(1 << 31));
        assert_eq!(address_space(&limits.replace("2147483648", "unlimited ")), None);
        let files = limit_files("12:cpu,memory:/box\n1:name=systemd:/x\n0::/user/one\n");
        let expected = [
            "/sys/fs/cgroup/memory/box/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/user/one/memory.max",
            "/sys/fs/cgroup/user/memory.max",
            "/sys/fs/cgroup/memory.max",
        ];
        assert_eq!(files, expected.map(Path::new));
    }

    #[test]
    fn sizes_are_shown_with_two_digits_or_more() {
        assert_eq!(
            [1_500, 2_000_000, 64_000_000, 11_600_000_000].map(shown),
            ["1.5 kB", "2.0 MB", "64 MB", "12 GB"]
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_takes_some_memory() {
        assert!(resident().is_some_and(|bytes| bytes > 100_000));
    }
}
