//! `fleetfoot shell --masquerade`: the command reaches a network beyond, and nothing of that is left. Needs namespaces and nft; says
//! so and skips without. All of it happens in a namespace that stands for the machine.
#![cfg(target_os = "linux")]

use fleetfoot_live::Namespace;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A network beyond: an interface `uplink` of the machine, and behind it a host that knows no way to what is inside.
struct Beyond(Child);

impl Drop for Beyond {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn machine(test: impl FnOnce(&Namespace) + Send) {
    if let Err(reason) = Namespace::available() {
        println!("skipped: {reason}");
        return;
    }
    for program in ["nft", "ping", "unshare"] {
        if Command::new(program).arg("--version").output().is_err() {
            println!("skipped: {program} is not there");
            return;
        }
    }
    Namespace::run(|namespace| {
        let mut host = Command::new("unshare");
        host.args(["-n", "sleep", "600"]).stdout(Stdio::null());
        let host = Beyond(host.spawn().expect("it is there"));
        let own = std::fs::read_link("/proc/thread-self/ns/net").expect("a namespace");
        let place = format!("/proc/{}/ns/net", host.0.id());
        eventually("it has a namespace of its own", || {
            std::fs::read_link(&place).is_ok_and(|there| there != own)
        });
        let inside = format!("nsenter -n -t {} ip", host.0.id());
        namespace
            .shell(&format!(
                "ip link add uplink type veth peer name w netns {}
                 ip addr add 198.51.100.1/24 dev uplink; ip addr add 2001:db8::1/64 dev uplink nodad; ip link set uplink up
                 {inside} addr add 198.51.100.2/24 dev w; {inside} addr add 2001:db8::2/64 dev w nodad; {inside} link set w up",
                host.0.id()
            ))
            .expect("the network can be made");
        // IPv6 takes a while to notice that a link is up.
        eventually("the network beyond answers", || {
            let both = "ping -c 1 -W 1 198.51.100.2 && ping -6 -c 1 -W 1 2001:db8::2";
            namespace.shell(both).is_ok()
        });
        test(namespace);
        Ok(())
    })
    .expect("namespaces are there");
}

fn fleetfoot(script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetfoot"));
    command
        .args(["shell", "--masquerade", "--", "sh", "-c", script])
        .stdin(Stdio::null());
    command
}

fn finished(script: &str) -> Output {
    fleetfoot(script).output().expect("the program was built")
}

fn running(script: &str) -> Child {
    let mut child = fleetfoot(script)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program was built");
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("a pipe");
    BufReader::new(stdout)
        .read_line(&mut line)
        .expect("it can be read");
    assert_eq!(line.trim(), "ready");
    child
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// No table of rules, no switch, no note is left.
fn is_untouched(namespace: &Namespace) -> bool {
    let rules = namespace.shell("nft list ruleset").expect("nft is there");
    let notes = namespace
        .shell("ls -d /run/fleetfoot-$(stat -L -c %i /proc/self/ns/net) 2>/dev/null || true")
        .expect("sh is there");
    rules.is_empty()
        && notes.is_empty()
        && namespace.sysctl_is("net.ipv4.conf.uplink.forwarding", "0")
        && namespace.sysctl_is("net.ipv6.conf.all.forwarding", "0")
}

/// On a busy machine `ping` may not be woken in time for one answer: any of several will do.
const REACHES: &str = "{ ping -c 1 -W 2 198.51.100.2 || ping -c 5 -W 5 198.51.100.2; } >/dev/null";

#[test]
fn the_command_reaches_a_network_beyond_while_it_runs() {
    machine(|namespace| {
        let output = finished(&format!(
            "{REACHES} && {{ ping -6 -c 1 -W 2 2001:db8::2 || ping -6 -c 5 -W 5 2001:db8::2; }} >/dev/null"
        ));
        assert!(output.status.success(), "{output:?}");
        assert!(is_untouched(namespace));
        let plain = Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
            .args(["shell", "--", "sh", "-c", "ping -c 1 -W 1 198.51.100.2"])
            .output()
            .expect("the program was built");
        assert_eq!(plain.status.code(), Some(1), "not without the flag: {plain:?}");
        assert_eq!(finished("exit 3").status.code(), Some(3));
        assert!(is_untouched(namespace));
    });
}

#[test]
fn the_last_of_several_puts_things_back() {
    machine(|namespace| {
        let mut first = running("echo ready; sleep 600");
        let mut second = running(&format!("echo ready; sleep 1; {REACHES}"));
        first.kill().expect("it runs");
        first.wait().expect("it ends");
        let status = second.wait().expect("it ends");
        assert!(status.success(), "the second did not mind");
        eventually("all is as it was", || is_untouched(namespace));
    });
}

#[test]
fn forwarding_that_somebody_switched_on_meanwhile_stays_on() {
    machine(|namespace| {
        let mut first = running("echo ready; sleep 600");
        namespace
            .shell("echo 1 > /proc/sys/net/ipv4/ip_forward")
            .expect("the switch is there");
        first.kill().expect("it runs");
        first.wait().expect("it ends");
        eventually("the rules are gone", || {
            let left = "nft list ruleset; ls -d /run/fleetfoot-$(stat -L -c %i /proc/self/ns/net) 2>/dev/null || true";
            namespace.shell(left).expect("sh is there").is_empty()
        });
        assert!(namespace.sysctl_is("net.ipv4.conf.uplink.forwarding", "1"));
    });
}

#[test]
fn what_is_left_when_all_was_killed_is_undone_by_the_next_start() {
    machine(|namespace| {
        let mut child = running("echo ready; sleep 600");
        assert!(!is_untouched(namespace));
        // The program and the process that waits for its end: the child of it that is called so.
        let own = child.id().to_string();
        let children = namespace
            .shell(&format!("cat /proc/{own}/task/{own}/children"))
            .expect("the kernel lists children");
        let guardian = children.split_whitespace().find(|process| {
            std::fs::read_to_string(format!("/proc/{process}/comm"))
                .is_ok_and(|name| name == "fleetfoot-undo\n")
        });
        let guardian = guardian.expect("it waits");
        namespace
            .shell(&format!("kill -9 {guardian} {own}"))
            .expect("they run");
        child.wait().expect("it ends");
        assert!(!is_untouched(namespace));
        let output = finished("exit 0");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            errors.contains("was killed; what it had left is undone"),
            "{errors}"
        );
        assert!(is_untouched(namespace));
    });
}

#[test]
fn a_shell_in_a_shell_reaches_the_outer_far_end() {
    machine(|namespace| {
        let script = format!(
            "outer=$FLEETFOOT_FAR; export outer; exec '{}' shell --quiet --masquerade --delay 5ms -- sh -c \
             'test $outer != $FLEETFOOT_FAR && ping -c 1 -W 2 $FLEETFOOT_FAR && ping -c 1 -W 2 $outer && {REACHES}'",
            env!("CARGO_BIN_EXE_fleetfoot")
        );
        let output = finished(&script);
        assert!(output.status.success(), "{output:?}");
        assert!(is_untouched(namespace));
    });
}

#[test]
fn a_missing_nft_is_named() {
    machine(|namespace| {
        let folder = std::env::temp_dir().join(format!("fleetfoot-path-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let ip = namespace.shell("command -v ip").expect("it is there");
        std::os::unix::fs::symlink(ip.trim(), folder.join("ip")).expect("a link");
        let output = fleetfoot("true").env("PATH", &folder).output();
        std::fs::remove_dir_all(&folder).expect("it was made");
        let output = output.expect("the program was built");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains("Debian package nftables"), "{errors}");
    });
}
