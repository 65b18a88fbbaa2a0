//! However `fleetfoot shell` ends, nothing of it is left and the next start works. Needs namespaces; says so and skips without.
#![cfg(target_os = "linux")]

use fleetfoot_live::Namespace;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Runs `test` in a namespace, whose interfaces are those of `shell` alone.
fn isolated(test: impl FnOnce(&Namespace) + Send) {
    if let Err(reason) = Namespace::available() {
        println!("skipped: {reason}");
        return;
    }
    Namespace::run(|namespace| {
        test(namespace);
        Ok(())
    })
    .expect("namespaces are there");
}

fn fleetfoot() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetfoot"));
    command.arg("shell").stdin(Stdio::null());
    command
}

/// `shell` with a command that prints a line and then sleeps for so many seconds; returns when the line is there.
fn running(flags: &[&str], script: &str) -> Running {
    let child = fleetfoot()
        .args(flags)
        .args(["--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program was built");
    let mut running = Running(Some(child));
    let child = running.child();
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("a pipe");
    BufReader::new(stdout)
        .read_line(&mut line)
        .expect("it can be read");
    if line.trim() != "ready" {
        let mut errors = String::new();
        let _ = child.stderr.as_mut().expect("a pipe").read_to_string(&mut errors);
        panic!("{line:?}: {errors}");
    }
    running
}

/// A run that a failed test does not leave behind.
struct Running(Option<Child>);

impl Running {
    fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("it has not been waited for")
    }

    fn id(&mut self) -> String {
        self.child().id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Seconds to sleep that nobody else sleeps, by which processes of a test are found: other runs of these tests have other ones.
fn marker(test: u32) -> String {
    (1_000_000 + std::process::id() * 20 + test).to_string()
}

/// Processes that have the argument `marker`.
fn processes(marker: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").expect("there is /proc");
    entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let arguments = std::fs::read(entry.path().join("cmdline")).ok()?;
            let mut arguments = arguments.split(|&byte| byte == 0);
            arguments
                .any(|argument| argument == marker.as_bytes())
                .then(|| entry.file_name().to_string_lossy().into_owned())
        })
        .collect()
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn interfaces(namespace: &Namespace) -> Vec<String> {
    let text = namespace.shell("ip -o link").expect("iproute2 is there");
    let names = text.lines().filter_map(|line| line.split(": ").nth(1));
    names.map(str::to_owned).collect()
}

/// No interface, address or route is left, no process with `marker`, and the next start works.
fn nothing_is_left(namespace: &Namespace, marker: &str) {
    eventually("processes are left", || processes(marker).is_empty());
    eventually("interfaces are left", || interfaces(namespace) == ["lo"]);
    let routes = namespace.shell("ip route; ip -6 route | grep fd66 || true");
    assert_eq!(routes.expect("iproute2 is there"), "");
    let output = fleetfoot()
        .args(["--quiet", "--", "sh", "-c", "exit 5"])
        .output()
        .expect("the program was built");
    assert_eq!(output.status.code(), Some(5), "the next start works: {output:?}");
}

fn signal(process: &str, name: &str) {
    let status = Command::new("kill").args(["-s", name, process]).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "kill -s {name} {process}"
    );
}

fn ended(mut running: Running) -> (Option<i32>, Output) {
    let child = running.0.take().expect("it has not been waited for");
    let output = child.wait_with_output().expect("it ends");
    (output.status.code(), output)
}

/// Kills the process that sleeps for so long, once it does; the program and the shells that start it have the words too.
fn kill_sleep(seconds: &str) {
    eventually("it sleeps", || {
        let sleeping = processes(seconds).into_iter().find(|process| {
            std::fs::read(format!("/proc/{process}/cmdline")).is_ok_and(|line| line.starts_with(b"sleep\0"))
        });
        sleeping.is_some_and(|process| {
            signal(&process, "KILL");
            true
        })
    });
}

#[test]
fn a_link_that_stood_still_is_late_by_as_much() {
    isolated(|_| {
        if !Path::new("/bin/ping").exists() && !Path::new("/usr/bin/ping").exists() {
            println!("skipped: there is no ping");
            return;
        }
        let script = "echo ready; exec ping -q -c 120 -i 0.02 -W 5 $FLEETFOOT_FAR";
        let mut running = running(&["--delay", "1ms"], script);
        let id = running.id();
        std::thread::sleep(Duration::from_millis(400));
        signal(&id, "STOP");
        // Longer than any frame waits in a socket of a process that runs.
        std::thread::sleep(Duration::from_millis(1700));
        signal(&id, "CONT");
        let (code, output) = ended(running);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(code, Some(0), "{errors}");
        let line = errors.lines().find(|line| line.starts_with("own lateness:"));
        let line = line.unwrap_or_else(|| panic!("{errors}"));
        let longest = line
            .split(" ms (longest)")
            .next()
            .and_then(|head| head.rsplit(' ').next());
        let longest: f64 = longest
            .and_then(|text| text.parse().ok())
            .unwrap_or_else(|| panic!("{line}"));
        assert!(longest > 1500.0, "{line}");
        assert!(errors.contains("not kept"), "{errors}");
    });
}

#[test]
fn killed_itself() {
    let marker = &marker(1);
    isolated(|namespace| {
        let script = &format!(
            "trap '' TERM INT HUP; sleep {marker} & setsid sleep {marker} & echo ready; sleep {marker}"
        );
        let mut child = running(&["--far", &format!("sleep {marker}")], script);
        eventually("all of them run", || processes(marker).len() >= 4);
        signal(&child.id(), "KILL");
        assert_eq!(ended(child).0, None);
        nothing_is_left(namespace, marker);
        // Without a far end of its own: one interface is here.
        let mut child = running(&[], &format!("echo ready; sleep {marker}"));
        assert_eq!(interfaces(namespace).len(), 2);
        child.child().kill().expect("it runs");
        ended(child);
        nothing_is_left(namespace, marker);
    });
}

#[test]
fn the_command_is_killed_and_the_far_command_is_killed() {
    let (marker, other) = (&marker(2), &marker(3));
    isolated(|namespace| {
        let child = running(&[], &format!("echo ready; exec sleep {marker}"));
        kill_sleep(marker);
        let (code, output) = ended(child);
        assert_eq!(code, Some(137), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("own lateness"));
        nothing_is_left(namespace, marker);

        let child = running(
            &["--far", &format!("exec sleep {other}")],
            "echo ready; sleep 1; exit 4",
        );
        kill_sleep(other);
        let (code, output) = ended(child);
        assert_eq!(code, Some(4), "the command goes on without the far one");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            errors.contains("far command ended before the command, with exit status 137"),
            "{errors}"
        );
        nothing_is_left(namespace, other);
    });
}

#[test]
fn interrupted_and_terminated() {
    let marker = &marker(4);
    isolated(|namespace| {
        for (name, code) in [("INT", 130), ("TERM", 143)] {
            let mut child = running(
                &["--far", &format!("sleep {marker}")],
                &format!("echo ready; exec sleep {marker}"),
            );
            signal(&child.id(), name);
            let (found, output) = ended(child);
            assert_eq!(found, Some(code), "{output:?}");
            assert!(
                String::from_utf8_lossy(&output.stderr).contains("own lateness"),
                "what was measured is printed: {output:?}"
            );
            nothing_is_left(namespace, marker);
        }
        // A shell that waits for another program does not hear of it before that has: both get it, as on a terminal.
        let mut child = running(&[], &format!("echo ready; sleep {marker}; exit 7"));
        signal(&child.id(), "INT");
        assert_eq!(ended(child).0, Some(130));
        // A command with an answer of its own to the signal has the status that it wants.
        let mut child = running(&[], "trap 'exit 9' INT; echo ready; while :; do sleep 0.05; done");
        signal(&child.id(), "INT");
        assert_eq!(ended(child).0, Some(9));
    });
}

#[test]
fn a_command_that_forks_and_exits_takes_what_it_started_with_it() {
    let marker = &marker(5);
    isolated(|namespace| {
        let child = running(
            &["--far", &format!("setsid sleep {marker} & sleep {marker}")],
            &format!(
                "sleep {marker} & setsid sleep {marker} & (setsid sleep {marker} &); echo ready; exit 3"
            ),
        );
        let (code, output) = ended(child);
        assert_eq!(code, Some(3), "{output:?}");
        nothing_is_left(namespace, marker);
    });
}

#[test]
fn an_interface_vanishes_and_a_second_instance_does_not_mind() {
    let marker = &marker(6);
    isolated(|namespace| {
        let first = running(
            &[],
            &format!("trap '' TERM; echo ready; while :; do sleep {marker}; done"),
        );
        let name = interfaces(namespace).pop().expect("its interface");
        let name = name.split('@').next().expect("a name").to_owned();
        let second = running(
            &[],
            "echo ready; sleep 1; ping -c 1 $FLEETFOOT_FAR >/dev/null; exit $?",
        );
        namespace.ip(&format!("link del {name}")).expect("it is there");
        let (code, output) = ended(first);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(code, Some(1), "{errors}");
        assert!(errors.contains("is gone"), "{errors}");
        assert!(
            errors.contains("own lateness"),
            "what was measured is printed: {errors}"
        );
        let (code, output) = ended(second);
        assert!(matches!(code, Some(0 | 127)), "{output:?}");
        nothing_is_left(namespace, marker);
    });
}

#[test]
fn without_root_and_user_namespaces_there_is_a_message() {
    let marker = &marker(7);
    isolated(|_| {
        // A user namespace in which nobody may make another, and a user in it who is not root there.
        let script = r#"
            sh -c "unshare -U sleep $MARKER" & sleep 0.3
            inner=$(pgrep -f "^sleep $MARKER\$") || exit 77
            echo '0 0 65536' > /proc/$inner/uid_map || exit 77
            echo '0 0 65536' > /proc/$inner/gid_map || exit 77
            nsenter -t $inner -U -S 0 -G 0 sh -c '
                echo 0 > /proc/sys/user/max_user_namespaces || exit 77
                exec setpriv --reuid 65534 --regid 65534 --clear-groups "$0" shell -- true' "$PROGRAM"
            code=$?
            kill $inner
            exit $code"#;
        let output = Command::new("sh")
            .args(["-c", script])
            .env("PROGRAM", env!("CARGO_BIN_EXE_fleetfoot"))
            .env("MARKER", marker)
            .output()
            .expect("there is sh");
        let errors = String::from_utf8_lossy(&output.stderr);
        if matches!(output.status.code(), Some(77 | 126 | 127)) {
            println!("skipped: {errors}");
            return;
        }
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains("cannot make a user namespace"), "{errors}");
    });
}

#[test]
fn ipv6_neighbour_discovery_arp_and_icmp_pass() {
    let marker = &marker(8);
    isolated(|namespace| {
        let script = "ping -c 1 $FLEETFOOT_FAR >/dev/null && ip neigh flush nud permanent && ip -6 neigh flush nud permanent && \
            ping -c 2 -i 0.1 $FLEETFOOT_FAR && ping -6 -c 2 -i 0.1 $FLEETFOOT_FAR6 && \
            ip neigh show dev eth0";
        let output = fleetfoot()
            .args(["--delay", "20ms", "--", "sh", "-c", script])
            .output()
            .expect("the program was built");
        if output.status.code() == Some(127) {
            println!("skipped: ping is not there (Debian package iputils-ping)");
            return;
        }
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        assert!(text.contains("100.") && text.contains("fd66:6c74:"), "{text}");
        assert!(
            text.contains("lladdr") && !text.contains("PERMANENT"),
            "neighbours were found: {text}"
        );
        nothing_is_left(namespace, marker);
    });
}

#[test]
fn ctrl_c_on_a_terminal_ends_a_command_that_never_ends() {
    let marker = &marker(9);
    isolated(|namespace| {
        let program = env!("CARGO_BIN_EXE_fleetfoot");
        // A terminal of its own, into which the character is typed: when the command runs, and before it does.
        for process in [
            format!("sleep {marker}"),
            format!("{program} shell -- sleep {marker}"),
        ] {
            let script = format!(
                "(until pgrep -xf '{process}'; do sleep 0.01; done > /dev/null; printf '\\003'; sleep 1) | script -qec '{program} shell -- sleep {marker}' /dev/null; echo status $?"
            );
            let text = namespace.shell(&script).expect("there is sh");
            if text.contains("status 127") {
                println!("skipped: script is not there");
                return;
            }
            assert!(text.contains("status 130"), "{text}");
            nothing_is_left(namespace, marker);
        }
    });
}

#[test]
fn without_root_both_ends_are_inside() {
    let marker = &marker(11);
    isolated(|namespace| {
        let program = env!("CARGO_BIN_EXE_fleetfoot");
        let script = format!(
            "cd /; setpriv --reuid 65534 --regid 65534 --clear-groups '{program}' shell --far 'sleep {marker}' -- \
             sh -c 'id -u; sleep {marker} & exit 6' 2>&1; echo status $?"
        );
        let text = namespace.shell(&script).expect("there is sh");
        if text.contains("status 127")
            || text.contains("status 126")
            || text.contains("cannot make a user namespace")
        {
            println!("skipped: {text}");
            return;
        }
        assert!(
            text.lines().any(|line| line == "0") && text.contains("status 6"),
            "{text}"
        );
        nothing_is_left(namespace, marker);
    });
}

#[test]
fn what_the_far_command_prints_is_not_the_output_of_the_command() {
    isolated(|_| {
        let output = fleetfoot()
            .args([
                "--json",
                "--far",
                "echo from afar; exit 11",
                "--",
                "sh",
                "-c",
                "sleep 0.5; echo inside",
            ])
            .output()
            .expect("the program was built");
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            serde_json::from_str::<serde_json::Value>(&text).is_ok(),
            "one document: {text}"
        );
        assert!(
            errors.contains("from afar") && errors.contains("inside"),
            "{errors}"
        );
        assert!(errors.contains("with exit status 11"), "{errors}");
    });
}

#[test]
fn a_full_disk_is_reported_and_the_command_goes_on() {
    let marker = &marker(12);
    isolated(|namespace| {
        let program = env!("CARGO_BIN_EXE_fleetfoot");
        let folder = std::env::temp_dir().join(format!("fleetfoot-full-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        // A file system of two pages, which only this shell sees.
        let run = |flag: &str, script: &str| {
            let script = format!(
                "mount -t tmpfs -o size=8k none '{0}' || exit 77
                 '{program}' shell {flag} '{0}/kept' -- sh -c '{script}' 2>&1; echo status $?",
                folder.display()
            );
            Command::new("unshare")
                .args(["-m", "sh", "-c", &script])
                .output()
                .expect("there is sh")
        };
        let pinging = "ping -q -c 200 -i 0.002 $FLEETFOOT_FAR; exit";
        let outputs = [
            (run("--pcap", &format!("{pinging} 0")), "status 1"),
            (run("--pcap", &format!("{pinging} 5")), "status 5"),
            (run("--out", &format!("{pinging} 0")), "status 1"),
        ];
        std::fs::remove_dir_all(&folder).expect("it was made");
        for (output, status) in outputs {
            if output.status.code() == Some(77) {
                println!("skipped: {output:?}");
                return;
            }
            let text = String::from_utf8_lossy(&output.stdout);
            if text.contains("ping: not found") {
                println!("skipped: ping is not there (Debian package iputils-ping)");
                return;
            }
            assert!(text.contains(status), "{text}");
            assert!(text.contains("200 packets transmitted, 200 received"), "{text}");
            assert!(text.contains("No space left on device"), "{text}");
            assert!(text.contains("own lateness"), "{text}");
        }
        nothing_is_left(namespace, marker);
    });
}
