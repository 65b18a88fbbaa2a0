//! What runs in real time depend on beside what is run: the kernel that plays them, and the program around it.

use fleetfoot_sim::spec::World;
use std::fs;
use std::sync::OnceLock;

/// A fingerprint of the sources that play runs in real time; the build script makes it.
const LIVE: &str = env!("FLEETFOOT_LIVE");

/// `identity` with all else that runs in `world` follow from besides their seed and what every key has ([`Store`](super::Store)).
pub(super) fn identity_in(world: World, identity: &str) -> String {
    if !world.is_real() {
        return identity.to_owned();
    }
    static KERNEL: OnceLock<String> = OnceLock::new();
    of_real(identity, KERNEL.get_or_init(kernel))
}

fn of_real(identity: &str, kernel: &str) -> String {
    format!("{identity} played by {LIVE} on {kernel}")
}

/// Release and version of the kernel, such as `6.18.44 #1 SMP`: the version says when and how it was built.
fn kernel() -> String {
    let part = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    format!("{} {}", part("osrelease").trim(), part("version").trim())
}

#[cfg(test)]
mod tests {
    use super::{LIVE, identity_in, kernel, of_real};
    use crate::run::Store;
    use fleetfoot_sim::spec::World;
    use std::collections::hash_map::DefaultHasher;
    use std::fs;
    use std::hash::Hasher;
    use std::path::{Path, PathBuf};

    #[test]
    fn a_run_in_real_time_is_another_on_another_kernel() {
        let key = |kernel: &str| Store::key(&of_real("it", kernel), 1);
        assert_eq!(key("6.18.44 #1 SMP"), key("6.18.44 #1 SMP"));
        assert_ne!(key("6.18.44 #1 SMP"), key("6.18.45 #1 SMP"));
        assert_ne!(key("6.18.44 #1 SMP"), key("6.18.44 #2 SMP"));
        for (_, world) in World::ALL {
            let expected = match world {
                World::Simulator => String::from("it"),
                World::Kernel | World::HostSends | World::HostReceives => of_real("it", &kernel()),
            };
            assert_eq!(identity_in(world, "it"), expected, "{world:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_says_its_release() {
        let output = std::process::Command::new("uname").arg("-rv").output();
        let said = output.expect("every Linux has it").stdout;
        assert_eq!(kernel(), String::from_utf8_lossy(&said).trim());
    }

    fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("it is in the tree").flatten() {
            match entry.path().is_dir() {
                true => sources(&entry.path(), files),
                false => files.push(entry.path()),
            }
        }
    }

    /// As the build script does it, over every file of `crates/live/src`.
    #[test]
    fn the_fingerprint_covers_all_that_plays_runs_in_real_time() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (mut files, mut hasher) = (Vec::new(), DefaultHasher::new());
        sources(&here.join("../live/src"), &mut files);
        files.sort();
        assert!(files.iter().any(|path| path.ends_with("kernel/traffic.rs")));
        for path in &files {
            let text = fs::read(path).expect("it is in the tree");
            let name = path.strip_prefix(here).unwrap_or(path);
            hasher.write(name.to_string_lossy().as_bytes());
            hasher.write_u64(text.len() as u64);
            hasher.write(&text);
        }
        assert_eq!(LIVE, format!("{:016x}", hasher.finish()));
    }
}
