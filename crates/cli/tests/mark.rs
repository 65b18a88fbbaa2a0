//! `fleetfoot mark`: what is marked and reported, and that nothing of it is left however it ends. Needs namespaces; says so and skips
//! without.
#![cfg(target_os = "linux")]

use fleetfoot_live::Namespace;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Runs `test` in a namespace, whose interfaces are those of `mark` alone.
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

fn has(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        println!("skipped: there is no {program}");
    }
    found
}

fn mark(flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetfoot"));
    command.arg("mark").args(flags).stdin(Stdio::null());
    command
}

fn output(flags: &[&str]) -> Output {
    mark(flags).output().expect("the program was built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn count(document: &Value, name: &str) -> u64 {
    document[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name}: {document:#}"))
}

/// Takes connections on port 7000, reads all of each and answers with how much that was.
const SERVER: &str = "\
import socket
s = socket.socket(socket.AF_INET6)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('::', 7000))
s.listen()
while True:
    c, n = s.accept()[0], 0
    while b := c.recv(65536):
        n += len(b)
    c.sendall(str(n).encode())
    c.close()
";

/// Sends in one piece to the host in this variable, and prints the answer; asks again until the far end listens.
fn client(variable: &str, bytes: u32) -> String {
    format!(
        "\
import socket, os, time
for _ in range(200):
    try:
        s = socket.create_connection((os.environ['{variable}'], 7000), 20)
        break
    except OSError:
        time.sleep(0.05)
s.sendall(b'x' * {bytes})
s.shutdown(socket.SHUT_WR)
print(s.recv(100).decode())
"
    )
}

#[test]
fn a_command_s_bursts_are_super_packets() {
    if !has("python3") {
        return;
    }
    isolated(|_| {
        let far = format!("exec python3 -c \"{SERVER}\"");
        for (variable, layouts) in [("FLEETFOOT_FAR", "B,C"), ("FLEETFOOT_FAR6", "A,C")] {
            let client = client(variable, 100_000);
            let run = output(&[
                "--json",
                "--layout",
                layouts,
                "--hold",
                "20ms",
                "--t-buffer",
                "5ms",
                "--far",
                &far,
                "--",
                "python3",
                "-c",
                &client,
            ]);
            assert!(run.status.success(), "{run:?}");
            assert!(
                text(&run.stderr).contains("100000"),
                "what the command prints is on standard error: {run:?}"
            );
            let document = document(&run);
            assert_eq!(
                (&document["schema"], &document["exit_code"]),
                (&"fleetfoot-mark".into(), &0.into())
            );
            let unmarked: u64 = document["unmarked"]
                .as_object()
                .expect("reasons")
                .values()
                .filter_map(Value::as_u64)
                .sum();
            assert_eq!(
                count(&document, "marked_packets") + unmarked,
                count(&document, "packets")
            );
            assert!(count(&document, "marked_packets") > 20, "{document:#}");
            let lengths = document["super_packets_by_length"].as_object().expect("lengths");
            let sum = |weight: fn(u64) -> u64| -> u64 {
                let lengths = lengths.iter().map(|(length, count)| {
                    weight(length.parse().expect("a length")) * count.as_u64().expect("a count")
                });
                lengths.sum()
            };
            assert_eq!(sum(|length| length), count(&document, "marked_packets"));
            assert_eq!(sum(|_| 1), count(&document, "super_packets"));
            assert!(
                document["held_s"]["max"].as_f64().expect("a time") <= 0.02,
                "{document:#}"
            );
            let held: u64 = document["held_s"]["histogram"]
                .as_array()
                .expect("classes")
                .iter()
                .map(|class| count(class, "packets"))
                .sum();
            assert_eq!(held, count(&document["held_s"], "n"));
        }
    });
}

#[test]
fn the_status_is_the_command_s_and_the_summary_says_what_was_marked() {
    isolated(|_| {
        let run = output(&["--far", "sleep 1000", "--", "sh", "-c", "echo said; exit 7"]);
        assert_eq!(
            (run.status.code(), text(&run.stdout).as_str()),
            (Some(7), "said\n"),
            "{run:?}"
        );
        assert!(text(&run.stderr).contains("packets marked"), "{run:?}");
        let quiet = output(&["--quiet", "--far", "sleep 1000", "--", "true"]);
        assert!(quiet.status.success() && quiet.stderr.is_empty(), "{quiet:?}");
        let missing = output(&["--far", "sleep 1000", "--", "no-such-program"]);
        assert_eq!(missing.status.code(), Some(1));
        assert!(text(&missing.stderr).contains("no-such-program"), "{missing:?}");
        let killed = output(&["--far", "sleep 1000", "--", "sh", "-c", "kill -9 $$"]);
        assert_eq!(killed.status.code(), Some(137), "{killed:?}");
    });
}

/// Behind the link of a shell, a queue that knows the marks admits or refuses them; the marks pass address translation.
#[test]
fn marks_reach_the_queue_of_a_shell() {
    if !has("python3") || !has("nft") {
        return;
    }
    isolated(|_| {
        let program = env!("CARGO_BIN_EXE_fleetfoot");
        let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("mark");
        std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
        let (document_of, pcap) = (folder.join("inner.json"), folder.join("marks.pcapng"));
        let (server, client) = (folder.join("server.py"), folder.join("client.py"));
        std::fs::write(&server, SERVER).expect("it can be written");
        std::fs::write(&client, self::client("FAR", 60_000)).expect("it can be written");
        let inner = format!(
            "FAR=$FLEETFOOT_FAR exec {program} mark --json --hold 20ms --t-buffer 5ms --masquerade -- python3 {} > {}",
            client.display(),
            document_of.display()
        );
        let run = Command::new(program)
            .args([
                "shell",
                "--json",
                "--rate",
                "50mbit",
                "--queue",
                "superpacket",
                "--force",
                "--pcap",
            ])
            .arg(&pcap)
            .args([
                "--far",
                &format!("exec python3 {}", server.display()),
                "--",
                "sh",
                "-c",
                &inner,
            ])
            .stdin(Stdio::null())
            .output()
            .expect("the program was built");
        assert!(run.status.success(), "{run:?}");
        assert!(text(&run.stderr).contains("60000"), "{run:?}");
        let inner = std::fs::read(&document_of).expect("mark wrote it");
        let inner: Value = serde_json::from_slice(&inner).expect("a document");
        assert!(count(&inner, "marked_packets") > 10, "{inner:#}");
        // The capture at the command's end of the link has the codepoint on them: 3 << 2, with any ECN.
        let capture = std::fs::read(&pcap).expect("shell wrote it");
        let marked = capture
            .windows(24)
            .filter(|bytes| {
                bytes[..2] == [0x08, 0]
                    && bytes[2] == 0x45
                    && bytes[3] >> 2 == 3
                    && bytes[8] == 0x40
                    && bytes[11] == 6
            })
            .count() as u64;
        assert!(marked >= count(&inner, "marked_packets"), "{marked}: {inner:#}");
    });
}

/// A run that a failed test does not leave behind.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `mark` until its command has printed a line, or until it says itself that it is ready.
fn running(flags: &[&str], ready: &str) -> Running {
    let mut child = mark(flags)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program was built");
    let lines: Box<dyn BufRead> = if ready == "ready" {
        Box::new(BufReader::new(child.stdout.take().expect("a pipe")))
    } else {
        Box::new(BufReader::new(child.stderr.take().expect("a pipe")))
    };
    let running = Running(child);
    let mut seen = Vec::new();
    for line in lines.lines() {
        seen.push(line.expect("text"));
        if seen.last().is_some_and(|line| line.contains(ready)) {
            return running;
        }
    }
    panic!("{seen:?}");
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

/// Processes that have the argument `marker`.
fn processes(marker: &str) -> usize {
    let entries = std::fs::read_dir("/proc").expect("there is /proc");
    let has = |path: std::path::PathBuf| {
        let arguments = std::fs::read(path.join("cmdline")).unwrap_or_default();
        arguments
            .split(|&byte| byte == 0)
            .any(|argument| argument == marker.as_bytes())
    };
    entries.flatten().filter(|entry| has(entry.path())).count()
}

#[test]
fn killed_with_what_its_command_started() {
    // Seconds that nobody else sleeps.
    let marker = &(3_000_000 + std::process::id()).to_string();
    isolated(|namespace| {
        let script = format!("setsid sleep {marker} & sleep {marker} & echo ready; wait");
        for far in [&[][..], &["--far", "sleep 1000"]] {
            let command = ["--", "sh", "-c", &script];
            let mut child = running(&[far, &command[..]].concat(), "ready");
            eventually("both run", || processes(marker) >= 2);
            child.0.kill().expect("it runs");
            child.0.wait().expect("it ends");
            eventually("processes are left", || processes(marker) == 0);
            eventually("interfaces are left", || interfaces(namespace) == ["lo"]);
        }
        // What a command leaves running ends with it.
        let run = output(&["--", "sh", "-c", &format!("setsid sleep {marker} & exit 3")]);
        assert_eq!(run.status.code(), Some(3), "{run:?}");
        eventually("processes are left", || processes(marker) == 0);
        assert_eq!(interfaces(namespace), ["lo"]);
    });
}

#[test]
fn between_two_interfaces_until_it_is_asked_to_end() {
    if !has("python3") || !has("ethtool") {
        return;
    }
    isolated(|middle| {
        // A host behind each of the interfaces.
        let host = |name: &'static str, address: &'static str| {
            let (there, is_there) = std::sync::mpsc::channel();
            let (go, goes) = std::sync::mpsc::channel::<String>();
            let (answer, answers) = std::sync::mpsc::channel();
            let thread = std::thread::spawn(move || {
                Namespace::run(move |namespace| {
                    let _ = there.send(fleetfoot_live::thread_id());
                    for script in goes {
                        let _ = answer.send(namespace.shell(&script));
                    }
                    Ok(())
                })
            });
            let id = is_there.recv().expect("a namespace");
            middle
                .ip(&format!(
                    "link add {name} type veth peer name eth0 netns {id}\nlink set {name} up"
                ))
                .expect("veth");
            let setup = format!(
                "ip address add {address}/24 dev eth0 && ip link set eth0 up && ethtool -K eth0 tx off tso off gso off gro off"
            );
            let ask = move |script: &str| {
                go.send(script.to_owned()).expect("it listens");
                answers
                    .recv()
                    .expect("it answers")
                    .unwrap_or_else(|error| panic!("{error}"))
            };
            ask(&setup);
            (ask, thread)
        };
        let (inside, inside_thread) = host("in0", "10.9.9.1");
        let (outside, outside_thread) = host("out0", "10.9.9.2");
        let offloads = || {
            middle
                .shell("ethtool -k in0; ethtool -k out0")
                .expect("ethtool is there")
        };
        let before = offloads();
        let server = outside(&format!("python3 -c \"{SERVER}\" > /dev/null 2>&1 & echo $!"));
        for signal in ["INT", "TERM"] {
            let mut child = running(
                &[
                    "--json",
                    "--between",
                    "in0,out0",
                    "--hold",
                    "20ms",
                    "--t-buffer",
                    "5ms",
                ],
                "Marking from in0 to out0",
            );
            let client = client("FAR", 50_000);
            let said = inside(&format!("FAR=10.9.9.2 python3 -c \"{client}\""));
            assert_eq!(said.trim(), "50000");
            let id = child.0.id().to_string();
            let sent = Command::new("kill").args(["-s", signal, &id]).status();
            assert!(sent.is_ok_and(|status| status.success()));
            let mut printed = String::new();
            let mut stdout = child.0.stdout.take().expect("a pipe");
            std::io::Read::read_to_string(&mut stdout, &mut printed).expect("text");
            assert_eq!(child.0.wait().expect("it ends").code(), Some(0));
            let document: Value =
                serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"));
            assert_eq!(document["between"], serde_json::json!(["in0", "out0"]));
            assert!(count(&document, "marked_packets") > 10, "{document:#}");
            assert!(count(&document, "packets_back") > 0);
            assert_eq!(offloads(), before, "what was switched off is on again");
        }
        // One that is killed leaves nothing that keeps the next one from starting.
        let mut child = running(&["--between", "in0,out0"], "Marking from in0 to out0");
        child.0.kill().expect("it runs");
        child.0.wait().expect("it ends");
        let child = running(&["--between", "in0,out0"], "Marking from in0 to out0");
        drop(child);
        if middle.ip("tuntap add dev tun7 mode tun").is_ok() {
            let refused = output(&["--between", "tun7,out0"]);
            assert_eq!(refused.status.code(), Some(2), "{refused:?}");
            assert!(
                text(&refused.stderr).contains("tun7 is no Ethernet interface"),
                "{refused:?}"
            );
        }
        middle
            .ip("link add br0 type bridge\nlink set in0 master br0")
            .expect("a bridge");
        let refused = output(&["--between", "in0,out0"]);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(
            text(&refused.stderr).contains("in0 belongs to br0"),
            "{refused:?}"
        );
        outside(&format!("kill {}", server.trim()));
        drop((inside, outside));
        for thread in [inside_thread, outside_thread] {
            thread.join().expect("no panic").expect("a namespace");
        }
    });
}

#[test]
fn a_user_without_rights_can_mark_what_stays_inside() {
    if !has("python3") || !has("setpriv") {
        return;
    }
    isolated(|_| {
        let far = format!("exec python3 -c \"{SERVER}\"");
        let client = client("FLEETFOOT_FAR", 50_000);
        let run = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(env!("CARGO_BIN_EXE_fleetfoot"))
            .args([
                "mark",
                "--json",
                "--hold",
                "20ms",
                "--t-buffer",
                "5ms",
                "--far",
                &far,
                "--",
                "python3",
                "-c",
                &client,
            ])
            .stdin(Stdio::null())
            .output()
            .expect("setpriv is there");
        let errors = text(&run.stderr);
        if errors.contains("user namespace") || errors.contains("Permission denied") {
            println!("skipped: {errors}");
            return;
        }
        assert!(run.status.success(), "{run:?}");
        assert!(errors.contains("50000"), "{run:?}");
        assert!(count(&document(&run), "marked_packets") > 10, "{run:?}");
    });
}
