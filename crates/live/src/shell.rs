//! A command behind a described link: namespaces, the threads in them, and the end of all of it.

use crate::contained::Contained;
use crate::ip::{Addresses, carries, forward, ip, ip_at, network_of, quiet, with_prefixes};
use crate::masquerade::{Masquerade, Masqueraded};
use crate::member::{Desk, Member};
use crate::signals::Signals;
use crate::{Clock, Direction, Emulator, Error, SenderSwitches, Way, switch_off_offloads};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::Signal;
use std::ffi::OsString;
use std::fs::File;
use std::io::PipeReader;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

/// A command behind a described link.
///
/// Three network namespaces in a row: that of the caller, which is the far end; one in which the link is; and one in which the
/// command runs. They are joined by veth pairs. All of it is gone when the threads that hold it end, also after a kill, with
/// everything that the command has started.
#[derive(Clone, Debug, Default)]
pub struct Shell {
    /// The command with its arguments.
    pub command: Vec<OsString>,
    /// What a shell starts first at the far end, to be ended with the command.
    pub far: Option<String>,
    /// MTU of the interfaces.
    pub mtu: u32,
    /// Bytes that packets of IPv6 may get on their way: the command's are smaller by that.
    pub six_room: u32,
    /// What it prints goes where its errors go.
    pub to_stderr: bool,
    /// The command reaches what the caller's namespace reaches.
    pub masquerade: Option<Arc<Masquerade>>,
    /// A file that takes what it prints, errors included; it is made anew. The command then has no input.
    pub output: Option<PathBuf>,
    /// Settings of the kernel's TCP at both ends.
    pub switches: SenderSwitches,
    /// Whether the far end is a namespace of its own ([`Shell::isolate`]).
    pub isolated: bool,
}

/// How a command behind a link ended.
pub struct Finished<W = Direction> {
    /// Its exit status; 128 and the signal's number where a signal ended it.
    pub status: ExitStatus,
    /// How the far command ended, if it did so before the command.
    pub far: Option<ExitStatus>,
    /// Whether an interrupt or another signal that ends programs came meanwhile.
    pub interrupted: bool,
    /// From its start to its end.
    pub wall: std::time::Duration,
    /// What was measured of what it sent (`[0]`) and what it received (`[1]`).
    pub directions: [W; 2],
    /// Frames that were lost because this machine did not read them in time.
    pub missed: u32,
    /// Frames that the interface of the command, and that of the far end, did not take: mostly longer than their MTU.
    pub untaken: [u64; 2],
    /// Why the link ended before the command, which was ended then.
    pub broken: Option<Error>,
}

impl Shell {
    /// Makes the far end a namespace of its own, so that nothing of this machine is touched. Without root this is done in a user
    /// namespace, in which the command appears as root. Call it before any thread is started.
    ///
    /// # Errors
    /// The kernel does not permit it.
    pub fn isolate() -> Result<(), Error> {
        if nix::unistd::geteuid().is_root() {
            unshare(CloneFlags::CLONE_NEWNET)
                .map_err(|errno| Error::new("cannot make a network namespace", errno))?;
        } else {
            let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
            unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET).map_err(no_user_namespace)?;
            let write = |path: &str, text: String| {
                std::fs::write(path, text)
                    .map_err(|cause| Error::new(format!("{NO_USER_NAMESPACE}: cannot write {path}"), cause))
            };
            write("/proc/self/setgroups", "deny".into())?;
            write("/proc/self/uid_map", format!("0 {user} 1"))?;
            write("/proc/self/gid_map", format!("0 {group} 1"))?;
        }
        ip("link set lo up")
    }

    /// Runs the command; `directions` are what becomes of what it sends and of what it receives. Standard input, output and error
    /// are its own.
    /// Signals that another process sends to this one meanwhile are passed on to the command.
    ///
    /// # Errors
    /// What the machine does not give, or the command cannot be started. Nothing is left behind.
    pub fn run<W: Way + Send>(&self, directions: [W; 2]) -> Result<Finished<W>, Error> {
        let signals = Signals::take()?;
        let pipe = || std::io::pipe().map_err(|cause| Error::new("cannot make a pipe", cause));
        let (stop_reading, stop_writing) = pipe()?;
        let (link_ended, link_ends) = pipe()?;
        let (ready, link_ready) = channel();
        std::thread::scope(|scope| {
            let middle = Member::start();
            let inside = Member::<Arc<Addresses>>::start();
            let (middle_seat, inside_seat) = (middle.seat, inside.seat);
            let middle_thread = scope.spawn(move || {
                let _ends = link_ends;
                middle_seat.take()?;
                let mut emulator = middle_seat.work(|_| {
                    for interface in ["near", "far"] {
                        ip(&format!("link set dev {interface} mtu {} up", self.mtu))?;
                        switch_off_offloads(interface)?;
                        // The link is no host: it answers nobody.
                        quiet(interface);
                    }
                    for interface in ["near", "far"] {
                        carries(interface)?;
                    }
                    crate::thread::prefer();
                    Emulator::new(["near", "far"], self.mtu, directions)
                })?;
                // From here on frames wait in the sockets, and none is lost.
                let _ = ready.send(());
                let clock = Clock::start();
                let _awake = crate::thread::stay_awake();
                // What passed until then was measured.
                let broken = emulator.run(&clock, &stop_reading).err();
                let missed = emulator.missed();
                Ok::<_, Error>((emulator.into_directions(), missed, broken))
            });
            let signals = &signals;
            let inside_thread = scope.spawn(move || {
                inside_seat.take()?;
                inside_seat.work(|addresses| self.begin(&addresses, signals))
            });
            let joined = self.join(&middle.desk, &inside.desk, &link_ready);
            drop((middle.desk, inside.desk));
            let started = inside_thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let before = started.as_ref().map_or(0, |(_, _, before)| *before);
            let ended = started.map(|(command, early, _)| {
                let began = command.began();
                (attend(command, signals, &link_ended, early), began.elapsed())
            });
            // While the link is there: with it the interfaces of both ends go.
            let [inside, outside] = joined.as_ref().map_or([0; 2], Outer::untaken);
            let untaken = [inside.saturating_sub(before), outside];
            // The link's thread ends when the other end of the pipe is closed.
            drop(stop_writing);
            let relayed = middle_thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // Of several errors the cause is named: others follow from it.
            let far = match (joined, &relayed) {
                (Err(error), Err(_)) if error.is_abandoned() => return Err(relayed.err().unwrap_or(error)),
                (Err(error), _) if error.is_abandoned() => return Err(ended.err().unwrap_or(error)),
                (joined, _) => joined?.far_status(),
            };
            let (status, interrupted, wall) = match ended {
                Ok((ended, wall)) => (ended.status, ended.interrupted, wall),
                Err(error) => (Err(error), false, std::time::Duration::ZERO),
            };
            let (directions, missed, broken) = match relayed {
                Err(_) if status.is_err() => return Err(status.err().unwrap_or_else(Error::abandoned)),
                relayed => relayed?,
            };
            Ok(Finished {
                status: status?,
                far,
                // One that came with the end of the command, or while the link was taken down, concerns the caller all the more.
                interrupted: interrupted | signals.have_come(),
                wall,
                directions,
                missed,
                untaken,
                broken,
            })
        })
    }

    /// Joins the namespaces, starts what runs at the far end and lets both threads go on.
    fn join(
        &self,
        middle: &Desk<Arc<Addresses>>,
        inside: &Desk<Arc<Addresses>>,
        link_ready: &Receiver<()>,
    ) -> Result<Outer<'_>, Error> {
        let (middle_at, inside_at) = (middle.place()?, inside.place()?);
        let addresses = Addresses::draw(|addresses| {
            ip(&format!(
                "link add {} address {} type veth peer name far netns {}",
                addresses.outer, addresses.hardware[0], middle_at.thread
            ))
        })?;
        let mut outer = Outer {
            far: None,
            masqueraded: None,
            untaken_before: 0,
            name: addresses.outer.clone(),
            inside: inside_at.namespace,
        };
        ip(&format!(
            "link set dev {0} mtu {1} up\naddress add {2}/30 dev {0}\nneighbour replace {3} lladdr {4} dev {0} nud permanent",
            outer.name, self.mtu, addresses.far[0], addresses.near[0], addresses.hardware[1]
        ))?;
        // Where there is no IPv6, there is none on this link.
        let _ = ip(&format!(
            "address add {1}/64 dev {0} nodad\nneighbour replace {2} lladdr {3} dev {0} nud permanent",
            outer.name, addresses.far[1], addresses.near[1], addresses.hardware[1]
        ));
        switch_off_offloads(&outer.name)?;
        if let Some(masquerade) = &self.masquerade {
            let [four, six] = &addresses.networks;
            outer.masqueraded = Some(masquerade.begin(&outer.name, Some(four), Some(six))?);
        }
        self.switches
            .set(&outer.name, &addresses.far, None, self.isolated)?;
        // A host of our TCP at the command's end, and one at this end that may be there before the command asks for it.
        let ([near_four, near_six], [far_four, far_six]) = (&addresses.near_host, &addresses.far_host);
        let [via_four, via_six] = &addresses.near;
        for line in [
            format!("route add {near_four} via {via_four}"),
            format!("route add {near_six} via {via_six}"),
        ] {
            let _ = ip(&line);
        }
        if self.isolated {
            // A host behind this end is reached only where this end is no part of the machine, which forwards nothing for us.
            forward();
        }
        if let Some(far) = &self.far {
            for line in [
                format!("route add blackhole {} metric 4096", network_of(far_four, 4)),
                format!("route add blackhole {} metric 4096", network_of(far_six, 6)),
            ] {
                let _ = ip(&line);
            }
            outer.far = Some(start_far(far, &addresses)?);
        }
        let pair = format!(
            "link add near type veth peer name eth0 address {} netns {}",
            addresses.hardware[1], inside_at.thread
        );
        ip_at(&middle_at.namespace, &pair)?;
        ip_at(&outer.inside, &format!("link set dev eth0 mtu {} up", self.mtu))?;
        let addresses = Arc::new(addresses);
        middle.go_on(Arc::clone(&addresses))?;
        // The first packets would be lost before, and a lost question for a neighbour costs a second.
        link_ready.recv().map_err(|_| Error::abandoned())?;
        carries(&outer.name)?;
        outer.untaken_before = untaken(&outer.name).unwrap_or(0);
        inside.go_on(addresses)?;
        Ok(outer)
    }

    /// The command, started in the namespace of this thread, whether a signal had come before, and how many frames its interface had not
    /// taken until then.
    fn begin(&self, addresses: &Addresses, signals: &Signals) -> Result<(Contained, bool, u64), Error> {
        let [four, six] = &addresses.near;
        let [far_four, far_six] = &addresses.far;
        // Both ends know each other: on a path through the Internet no first packet waits for an answer about hardware.
        let far_hardware = &addresses.hardware[0];
        ip(&format!(
            "link set lo up\naddress add {four}/30 dev eth0\nroute add default via {far_four}\n\
             neighbour replace {far_four} lladdr {far_hardware} dev eth0 nud permanent"
        ))?;
        carries("eth0")?;
        let has_six = ip(&format!(
            "address add {six}/64 dev eth0 nodad\nroute add default via {far_six}\n\
             neighbour replace {far_six} lladdr {far_hardware} dev eth0 nud permanent"
        ))
        .is_ok();
        switch_off_offloads("eth0")?;
        if self.six_room > 0 {
            // Where there is no IPv6, there is no such switch.
            let path = "/proc/sys/net/ipv6/conf/eth0/mtu";
            let _ = std::fs::write(path, (self.mtu - self.six_room.min(self.mtu)).to_string());
        }
        self.switches
            .set("eth0", &addresses.near, Some(&addresses.far), true)?;
        forward();
        let [program, arguments @ ..] = &self.command[..] else {
            return Err(Error::new("no command", std::io::ErrorKind::InvalidInput));
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("FLEETFOOT_FAR", far_four)
            .env("FLEETFOOT_HOST", &addresses.far_host[0])
            .env("FLEETFOOT_HOST6", &addresses.far_host[1])
            .env("FLEETFOOT_ADDRESS", with_prefixes(&addresses.near_host))
            .env("MAHIMAHI_BASE", far_four);
        // Where there is no IPv6 on this link (an MTU below 1280, a kernel without it), there is no such address.
        match has_six {
            true => command.env("FLEETFOOT_FAR6", far_six),
            false => command.env_remove("FLEETFOOT_FAR6"),
        };
        if self.to_stderr {
            command.stdout(standard_error()?);
        }
        if let Some(path) = &self.output {
            let fail = |cause| Error::new(format!("cannot write {}", path.display()), cause);
            let file = File::create(path).map_err(fail)?;
            command
                .stdin(Stdio::null())
                .stdout(file.try_clone().map_err(fail)?)
                .stderr(file);
        }
        let early = signals.has_come();
        let before = untaken("eth0").unwrap_or(0);
        Ok((Contained::start(command)?, early, before))
    }
}

/// The far end: what runs there, and its interface. Both are gone when this is dropped, so that the next run finds the name and the
/// address free: the kernel takes its time with a namespace.
struct Outer<'a> {
    far: Option<Contained>,
    masqueraded: Option<Masqueraded<'a>>,
    /// What its interface had not taken before the link was there.
    untaken_before: u64,
    name: String,
    /// The command's namespace, which is there until the link has ended: an interface that vanishes is an error.
    inside: File,
}

impl Outer<'_> {
    /// Frames that both ends' interfaces did not take.
    fn untaken(&self) -> [u64; 2] {
        // A thread may enter a namespace, and is gone afterwards.
        let inside = std::thread::scope(|scope| {
            let look = || {
                setns(&self.inside, CloneFlags::CLONE_NEWNET).ok()?;
                untaken("eth0")
            };
            scope.spawn(look).join().ok().flatten()
        });
        let own = untaken(&self.name).unwrap_or(0);
        [inside.unwrap_or(0), own.saturating_sub(self.untaken_before)]
    }

    /// Ends it all: the status of the far command, if that has ended by itself.
    fn far_status(mut self) -> Option<ExitStatus> {
        let far = self.far.take()?;
        if far.has_ended() { far.wait().ok() } else { None }
    }
}

impl Drop for Outer<'_> {
    fn drop(&mut self) {
        drop(self.far.take());
        drop(self.masqueraded.take());
        let _ = ip(&format!("link del {}", self.name));
    }
}

/// Frames that an interface in the namespace of this thread dropped when it was to send them.
fn untaken(interface: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").ok()?;
    let mut lines = text.lines().filter_map(|line| line.trim_start().split_once(':'));
    let (_, counters) = lines.find(|(name, _)| *name == interface)?;
    // Eight counters of what came, then bytes, packets, errors and drops of what was sent.
    counters.split_whitespace().nth(11)?.parse().ok()
}

/// What a shell starts at the far end. It is not in the foreground of the terminal, whose Ctrl-C concerns the command, and what it
/// prints is not the command's output.
fn start_far(text: &str, addresses: &Addresses) -> Result<Contained, Error> {
    let mut command = Command::new("sh");
    command
        .args(["-c", text])
        .env("FLEETFOOT_ADDRESS", with_prefixes(&addresses.far_host))
        .stdin(Stdio::null())
        .process_group(0);
    // Those of a shell around this one name another far end.
    for name in FAR_NAMES {
        command.env_remove(name);
    }
    command.stdout(standard_error()?);
    Contained::start(command)
}

/// A descriptor of standard error, to be used for standard output.
fn standard_error() -> Result<OwnedFd, Error> {
    std::io::stderr()
        .as_fd()
        .try_clone_to_owned()
        .map_err(|cause| Error::new("cannot use standard error", cause))
}

/// How a command ended, and whether this program was to end.
pub(crate) struct Ended {
    pub(crate) status: Result<ExitStatus, Error>,
    interrupted: bool,
}

/// Waits for the end of the command, passes signals on to it, and ends it if the link has ended. `early`: a signal came before the
/// command was there, so that the terminal could not give it to the command.
pub(crate) fn attend(command: Contained, signals: &Signals, link_ended: &PipeReader, early: bool) -> Ended {
    let mut interrupted = false;
    // When the command is to be killed that was asked to end.
    let mut patience: Option<std::time::Instant> = None;
    loop {
        let mut wanted = [
            PollFd::new(command.as_fd(), PollFlags::POLLIN),
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(link_ended.as_fd(), PollFlags::POLLIN),
        ];
        let count = if patience.is_some() { 2 } else { 3 };
        let left = patience.map(|until| until.saturating_duration_since(std::time::Instant::now()));
        let timeout = left.map_or(PollTimeout::NONE, |left| {
            PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX)
        });
        let polled = poll(&mut wanted[..count], timeout);
        let seen =
            |index: usize| index < count && wanted[index].revents().is_some_and(|events| !events.is_empty());
        if matches!(polled, Err(errno) if errno != Errno::EINTR) || seen(0) {
            break;
        }
        if seen(1) {
            while let Some((signal, sent)) = signals.next() {
                interrupted = true;
                if sent || early {
                    command.signal(signal);
                }
            }
        }
        if seen(2) {
            // Without its link the command waits for nothing.
            command.signal(Signal::SIGTERM);
            patience = Some(std::time::Instant::now() + PATIENCE);
        } else if left.is_some_and(|left| left.is_zero()) {
            command.signal(Signal::SIGKILL);
            patience = Some(std::time::Instant::now() + PATIENCE);
        }
    }
    Ended {
        status: command.wait(),
        interrupted,
    }
}

/// Without root everything happens in one.
fn no_user_namespace(errno: Errno) -> Error {
    match errno {
        // What this number says elsewhere leads astray.
        Errno::ENOSPC => Error::new(
            NO_USER_NAMESPACE,
            std::io::Error::other("user.max_user_namespaces is 0, or as many are in use"),
        ),
        errno => Error::new(NO_USER_NAMESPACE, errno),
    }
}

/// What tells a command where the far end is.
const FAR_NAMES: [&str; 5] = [
    "FLEETFOOT_FAR",
    "FLEETFOOT_FAR6",
    "FLEETFOOT_HOST",
    "FLEETFOOT_HOST6",
    "MAHIMAHI_BASE",
];

const NO_USER_NAMESPACE: &str =
    "cannot make a user namespace, which is needed without root (see `fleetfoot doctor`)";

/// How long a command may take to end when it was asked to.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);
