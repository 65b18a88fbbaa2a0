//! The program in a process of its own: started in a place, signalled, killed, and looked at from outside.

use crate::Folder;
use crate::row::Place;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// `fleetfoot` with arguments; killed when this is dropped, or when the tests are.
pub(crate) struct Program {
    child: Child,
    log: PathBuf,
    output: PathBuf,
    ended: bool,
    /// The thread that started it stays as long: with it the program would end.
    _stays: Sender<()>,
}

impl Program {
    /// Starts it, and waits until its log has the line with `ready`.
    pub(crate) fn start(
        place: &Place,
        folder: &Folder,
        name: &str,
        arguments: &[&str],
        ready: &str,
    ) -> Program {
        let log = folder.path().join(format!("{name}.log"));
        let output = folder.path().join(format!("{name}.out"));
        let namespace = place.run(|| File::open("/proc/thread-self/ns/net").expect("it is there"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_fleetfoot"));
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(File::create(&output).expect("a file"))
            .stderr(File::create(&log).expect("a file"));
        // SAFETY: between fork and exec only a system call is made.
        unsafe {
            command.pre_exec(|| Ok(nix::sys::prctl::set_pdeathsig(Some(Signal::SIGKILL))?));
        }
        let (stays, leaves) = channel::<()>();
        let (report, reports) = channel();
        std::thread::spawn(move || {
            nix::sched::setns(&namespace, nix::sched::CloneFlags::CLONE_NEWNET).expect("root may");
            drop(namespace);
            report.send(command.spawn()).expect("the test waits");
            drop(command);
            let _ = leaves.recv();
        });
        let child = reports.recv().expect("the thread lives").expect("it was built");
        let mut program = Program {
            child,
            log,
            output,
            ended: false,
            _stays: stays,
        };
        program.until(|program| program.said(ready) > 0, ready);
        program
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// How often its log has `word`.
    pub(crate) fn said(&self, word: &str) -> usize {
        self.log().matches(word).count()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until something holds, 60 s at most, while it runs.
    pub(crate) fn until(&mut self, holds: impl Fn(&Program) -> bool, what: &str) {
        let began = Instant::now();
        while !holds(self) {
            if let Some(status) = self.child.try_wait().expect("it is a child") {
                self.ended = true;
                let output = std::fs::read_to_string(&self.output).unwrap_or_default();
                panic!("it ended with {status} before {what:?}: {}{output}", self.log());
            }
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "no {what:?}: {}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("it runs");
    }

    /// Kills it, as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.signal(Signal::SIGKILL);
        self.child.wait().expect("it is a child");
        self.ended = true;
    }

    /// Ends it as an operator does: what it wrote to standard output.
    pub(crate) fn end(mut self) -> String {
        self.signal(Signal::SIGTERM);
        let status = self.child.wait().expect("it is a child");
        self.ended = true;
        assert!(status.success(), "{status}: {}", self.log());
        std::fs::read_to_string(&self.output).expect("its output")
    }

    /// What it holds now.
    pub(crate) fn holds(&self) -> Holds {
        let pid = self.pid();
        let entries = |of: &str| {
            std::fs::read_dir(format!("/proc/{pid}/{of}"))
                .expect("it runs")
                .count()
        };
        Holds {
            descriptors: entries("fd"),
            threads: entries("task"),
        }
    }

    /// What it holds while it does nothing special: a look at the interfaces takes a socket for a moment.
    pub(crate) fn rests(&self) -> Holds {
        let looks = (0..50).map(|_| {
            std::thread::sleep(Duration::from_millis(4));
            self.holds()
        });
        looks
            .min_by_key(|holds| (holds.descriptors, holds.threads))
            .expect("it was looked at")
    }

    /// Most memory that it had at once, bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        kib.expect("the system says") << 10
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Descriptors and threads of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holds {
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
}

/// Descriptors of this process.
pub(crate) fn own_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd")
        .expect("there is /proc")
        .count()
}

/// Waits until this process has no more descriptors than `before`, and no child.
pub(crate) fn nothing_is_left(before: usize) {
    let began = Instant::now();
    while own_descriptors() > before || !children().is_empty() {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "{} descriptors, before {before}; children {:?}",
            own_descriptors(),
            children()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn children() -> String {
    let own = std::process::id();
    std::fs::read_dir("/proc/self/task")
        .expect("there is /proc")
        .filter_map(Result::ok)
        .map(|task| {
            let path = format!("/proc/{own}/task/{}/children", task.file_name().to_string_lossy());
            std::fs::read_to_string(path).unwrap_or_default()
        })
        .collect()
}

/// What the kernel of a place has of interfaces and routes, whether or not the other end of a link is there at the moment.
pub(crate) fn state_of(place: &Place) -> String {
    place.run(|| {
        let ip = |arguments: &str| {
            let output = Command::new("ip")
                .args(arguments.split(' '))
                .output()
                .expect("iproute2");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let links = ip("-o -d link");
        let mut state: Vec<String> = links
            .lines()
            .map(|line| {
                let name = line.split(' ').nth(1).unwrap_or_default();
                let promiscuous = line
                    .split("promiscuity ")
                    .nth(1)
                    .and_then(|rest| rest.split(' ').next());
                format!("{name} promiscuity {}", promiscuous.unwrap_or("?"))
            })
            .collect();
        for what in ["route", "-6 route", "rule"] {
            state.extend(
                ip(what)
                    .lines()
                    .map(|line| line.replace(" linkdown", "").trim().to_owned()),
            );
        }
        state.sort();
        state.join("\n")
    })
}
