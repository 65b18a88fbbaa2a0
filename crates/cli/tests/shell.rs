//! `fleetfoot shell`: what a command behind the link sees, and what is reported. Needs namespaces; says so and skips without.
#![cfg(target_os = "linux")]

use std::process::{Command, Output};

fn skips() -> bool {
    match fleetfoot_live::Namespace::available() {
        Ok(()) => false,
        Err(reason) => {
            println!("skipped: {reason}");
            true
        }
    }
}

/// Runs `script` behind the link, both ends in networks of their own.
fn shell(flags: &[&str], script: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
        .arg("shell")
        .args(flags)
        .args(["--far", "sleep 1000", "--", "sh", "-c", script])
        .output()
        .expect("the program was built")
}

#[test]
fn the_command_has_its_own_output_and_status() {
    if skips() {
        return;
    }
    let output = shell(
        &["--rate", "20mbit/5mbit", "--delay", "5ms", "--quiet"],
        "echo $FLEETFOOT_FAR; exit 7",
    );
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stdout).starts_with("100."),
        "{output:?}"
    );
    assert!(output.stderr.is_empty(), "{output:?}");
    let missing = Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
        .args(["shell", "--far", "sleep 1000", "--", "no-such-program"])
        .output()
        .expect("the program was built");
    assert_eq!(missing.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&missing.stderr).contains("no-such-program"),
        "{missing:?}"
    );
}

#[test]
fn json_is_one_document_and_a_file_describes_the_link() {
    if skips() {
        return;
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cmd/small.toml");
    let output = shell(
        &[file, "--set", "network.bottleneck.mtu=1400", "--json"],
        "cat /sys/class/net/lo/mtu; ip link show eth0",
    );
    assert!(output.status.success(), "{output:?}");
    let document: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("one JSON document on standard output");
    assert_eq!(document["schema"], "1.3");
    assert_eq!(document["live"]["compared"], false);
    let run = &document["variants"][0]["live"]["measured"][0];
    assert_eq!(run["exit_code"], 0);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("mtu 1400"),
        "the command's output is on standard error: {errors}"
    );
}

/// Its way back has a queue of its own.
const HOME: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/home-line.toml");

#[test]
fn a_queue_stands_in_both_directions_also_where_the_file_has_one_for_each() {
    if skips() {
        return;
    }
    let links = |output: &Output, variant: usize| {
        let document: serde_json::Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let links = document["variants"][variant]["live"]["link"]
            .as_array()
            .expect("links");
        let words = |link: &serde_json::Value| link.as_str().expect("words").to_owned();
        links.iter().map(words).collect::<Vec<_>>()
    };
    let with = |links: &[String], queue: &str| links.iter().filter(|link| link.contains(queue)).count();
    let output = shell(
        &[HOME, "--queue", "fq-codel", "--limit", "500 packets", "--json"],
        "true",
    );
    assert_eq!(with(&links(&output, 0), "fq-codel, limit 500 packets"), 2);
    let output = shell(
        &[HOME, "--compare", "drop-tail,fq-codel", "--runs", "1", "--json"],
        "true",
    );
    assert_eq!(with(&links(&output, 0), "drop-tail"), 2);
    assert_eq!(with(&links(&output, 1), "fq-codel"), 2);
    let output = shell(&["--compare", "drop-tail,red+fq-codel"], "true");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        text(&output.stderr).contains("red and fq-codel are two"),
        "{output:?}"
    );
}

#[test]
fn a_file_with_a_network_alone_describes_the_whole_way() {
    if skips() {
        return;
    }
    let folder = folder("network");
    let file = folder.join("network.toml");
    let network = "[network]\nkind = \"dumbbell\"\npairs = 1\naccess = { rate = \"1 Gbit/s\", delay = \"3 ms\" }\n\
                   bottleneck = { rate = \"8 Mbit/s\", delay = \"7 ms\", queue = { kind = \"drop-tail\", limit = \"100 packets\" } }\n";
    std::fs::write(&file, network).expect("the folder is writable");
    let file = file.to_string_lossy().into_owned();
    let output = shell(&[&file, "--sender", "cc=reno"], "ping -c 3 -i 0.2 $FLEETFOOT_FAR");
    let errors = text(&output.stderr);
    assert!(output.status.success(), "{errors}");
    for line in [
        "down: 8 Mbit/s, 13 ms one way, drop-tail, limit 100 packets (150 ms when full)",
        "up: 8 Mbit/s, 13 ms one way, drop-tail, limit 100 packets (150 ms when full)",
        "congctl reno",
    ] {
        assert!(errors.contains(line), "{line}: {errors}");
    }
    // What `ping` saw as the least: 4 times 3 ms and 2 times 7 ms, never less.
    let printed = text(&output.stdout);
    let least = printed.split("= ").last().and_then(|rest| rest.split('/').next());
    let least: f64 = least.and_then(|least| least.parse().ok()).unwrap_or(0.0);
    assert!((26.0..46.0).contains(&least), "{printed}");
    // The flags of a link change the link, and the rest of the way stays; each error is that of its flag.
    let output = shell(
        &[&file, "--limit", "50 packets/20 packets", "--queue", "fq-codel"],
        "true",
    );
    let errors = text(&output.stderr);
    for line in [
        "down: 8 Mbit/s, 13 ms one way, fq-codel, limit 50 packets",
        "up: 8 Mbit/s, 13 ms one way, fq-codel, limit 20 packets",
    ] {
        assert!(errors.contains(line), "{line}: {errors}");
    }
    let output = shell(&["--rate", "20mbit", "--queue", "fq_codel"], "true");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("--> --queue:"), "{output:?}");
}

#[test]
fn without_a_file_the_delay_of_the_flags_is_all_of_it() {
    if skips() {
        return;
    }
    let output = shell(&["--delay", "10ms"], "true");
    let errors = String::from_utf8_lossy(&output.stderr);
    for way in ["down", "up"] {
        let line = format!("{way}: 100 Gbit/s, 10 ms one way, drop-tail, limit 1000 packets");
        assert!(errors.contains(&line), "{errors}");
    }
}

#[test]
fn without_a_file_the_limit_is_that_of_the_queue_and_loss_and_jitter_are_said() {
    if skips() {
        return;
    }
    for (queue, limit) in [
        ("fq-codel", "limit 10240 packets"),
        ("sfq", "limit 127 packets"),
        ("cake", "limit automatic"),
    ] {
        let flags = [
            "--delay", "10ms", "--queue", queue, "--loss", "1%", "--jitter", "5ms",
        ];
        let output = shell(&flags, "true");
        let errors = String::from_utf8_lossy(&output.stderr);
        for way in ["down", "up"] {
            let line = format!(
                "{way}: 100 Gbit/s, 10 ms one way, up to 5.0 ms of jitter, 1 % lost, {queue}, {limit}"
            );
            assert!(errors.contains(&line), "{line}: {errors}");
        }
    }
}

#[test]
fn a_delay_and_a_trace_are_those_of_both_directions_whatever_the_file_has() {
    if skips() {
        return;
    }
    let folder = folder("both");
    let (file, trace) = (folder.join("line.toml"), folder.join("up-down"));
    std::fs::write(
        &file,
        "title = \"a line\"\n[network]\nkind = \"dumbbell\"\npairs = 1\naccess = { delay = \"0 ms\" }\n\
         bottleneck = { rate = \"5 Mbit/s\", delay = \"30 ms\", reverse = { rate = \"1 Mbit/s\", delay = \"50 ms\" } }\n",
    )
    .expect("it can be written");
    std::fs::write(&trace, "1\n2\n").expect("it can be written");
    let [file, trace] = [&file, &trace].map(|path| path.to_str().expect("a name in UTF-8"));
    let output = shell(&[file, "--delay", "1ms", "--trace", trace], "true");
    let errors = text(&output.stderr);
    for way in ["down", "up"] {
        let line = errors.lines().find(|line| line.starts_with(&format!("{way}: ")));
        let line = line.unwrap_or_else(|| panic!("{errors}"));
        assert!(line.contains(": trace, 1.0 ms one way"), "{line}");
    }
}

#[test]
fn what_a_command_is_told_says_nothing_to_fleetfoot() {
    if skips() {
        return;
    }
    // A --json behind the two hyphens is the command's.
    let output = Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
        .args(["shell", "--queue", "nothing", "--", "true", "--json"])
        .output()
        .expect("the program was built");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        output.stdout.is_empty() && text(&output.stderr).contains("nothing"),
        "{output:?}"
    );
    // A far end is told nothing of the far end of a shell around it.
    let output = Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
        .env("FLEETFOOT_FAR", "192.0.2.1")
        .args([
            "shell",
            "--quiet",
            "--far",
            "echo far=$FLEETFOOT_FAR.",
            "--",
            "sleep",
            "0.3",
        ])
        .output()
        .expect("the program was built");
    assert!(text(&output.stderr).contains("far=."), "{output:?}");
}

#[test]
fn the_status_is_the_commands_also_where_its_result_cannot_be_printed() {
    if skips() {
        return;
    }
    let run = |script: &str| {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
            .args(["shell", "--json", "--far", "sleep 9", "--", "sh", "-c", script])
            .stdout(full.expect("Linux has it"))
            .output()
            .expect("the program was built")
    };
    for (script, code) in [("exit 3", 3), ("true", 1)] {
        let output = run(script);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(
            text(&output.stderr).contains("cannot write to stdout"),
            "{output:?}"
        );
    }
}

#[test]
fn a_start_that_failed_is_not_in_the_way_of_the_next() {
    if skips() {
        return;
    }
    let folder = folder("again");
    let (out, capture) = (folder.join("out"), folder.join("capture.pcapng"));
    let [out, capture] = [&out, &capture].map(|path| path.to_str().expect("a name in UTF-8"));
    let flags = ["--out", out, "--pcap", capture, "--far", "sleep 9", "--"];
    let failed = fleetfoot(&[&flags[..], &["no-such-program"]].concat());
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let next = fleetfoot(&[&flags[..], &["true"]].concat());
    assert_eq!(next.status.code(), Some(0), "{next:?}");
    // What is no file of ours stays: a pipe here, /dev/null elsewhere.
    let pipe = folder.join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()));
    let reader = std::fs::OpenOptions::new().read(true).write(true).open(&pipe);
    let name = pipe.to_str().expect("a name in UTF-8");
    let failed = fleetfoot(&["--pcap", name, "--far", "sleep 9", "--", "no-such-program"]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    assert!(pipe.exists() && reader.is_ok());
    // Another setting is another result.
    let other = fleetfoot(&[
        "--out",
        out,
        "--sender",
        "initcwnd=4",
        "--far",
        "sleep 9",
        "--",
        "true",
    ]);
    assert_eq!(other.status.code(), Some(2), "{other:?}");
    assert!(text(&other.stderr).contains("holds something else"), "{other:?}");
}

#[test]
fn frames_above_the_mtu_are_told_also_where_they_never_reach_the_link() {
    if skips() || !has("ping") {
        return;
    }
    let script = "ip link set eth0 mtu 9000; ping -q -M do -s 3000 -c 2 -i 0.2 -W 1 $FLEETFOOT_FAR > /dev/null; \
                  awk '/eth0:/ { print \"dropped\", $13 }' /proc/net/dev";
    // On a busy machine ping may not send at all for the moment; then nothing was dropped, and nothing is to be told.
    let told = (0..5).any(|_| {
        let output = shell(&["--delay", "1ms"], script);
        let dropped = !text(&output.stdout).contains("dropped 0");
        let errors = text(&output.stderr);
        let told = errors.contains(" packets never came to the link: the command's interface");
        assert_eq!(told, dropped, "{output:?}");
        told
    });
    assert!(told, "no frame was dropped in five attempts");
    let output = shell(&["--delay", "1ms"], "ping -q -c 1 $FLEETFOOT_FAR");
    assert!(!text(&output.stderr).contains("never came"), "{output:?}");
}

#[test]
fn the_time_of_a_command_is_not_shorter_than_it_took() {
    if skips() {
        return;
    }
    for _ in 0..5 {
        let output = shell(&["--json"], "exec sleep 0.05");
        let document: serde_json::Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let wall = document["variants"][0]["live"]["measured"][0]["wall_s"].as_f64();
        assert!(wall.is_some_and(|wall| wall >= 0.05), "{wall:?}");
    }
}

#[test]
fn a_comparison_in_which_no_run_counts_has_failed() {
    if skips() {
        return;
    }
    let output = shell(&["--compare", "drop-tail,fq-codel", "--runs", "1"], "false");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stdout).contains("No run counts"), "{output:?}");
}

/// A folder of its own for a test.
fn folder(name: &str) -> std::path::PathBuf {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("shell-{name}"));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("the target folder is writable");
    path
}

/// A server at the far end of which a file of 300 kB can be had, and what fetches it when it is there.
fn server(folder: &std::path::Path) -> (String, &'static str) {
    std::fs::write(folder.join("file"), vec![b'x'; 300_000]).expect("it can be written");
    let far = format!(
        "cd '{}' && exec python3 -m http.server 8000 2> /dev/null",
        folder.display()
    );
    let fetch = "until curl -s -f -o /dev/null http://$FLEETFOOT_FAR:8000/file; do sleep 0.1; done";
    (far, fetch)
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

fn fleetfoot(flags: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
        .arg("shell")
        .args(flags)
        .output()
        .expect("the program was built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn flows_a_capture_and_a_report_are_made_of_what_passes() {
    if skips() || !has("curl") || !has("python3") {
        return;
    }
    let folder = folder("flows");
    let (far, fetch) = server(&folder);
    let (pcap, out) = (folder.join("a.pcapng"), folder.join("out"));
    let (pcap, out) = (pcap.to_string_lossy(), out.to_string_lossy());
    let output = fleetfoot(&[
        "--rate",
        "20mbit/5mbit",
        "--delay",
        "10ms",
        "--limit",
        "30 packets",
        "--json",
        "--pcap",
        &pcap,
        "--out",
        &out,
        "--far",
        &far,
        "--",
        "sh",
        "-c",
        fetch,
    ]);
    assert!(output.status.success(), "{output:?}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let run = &document["variants"][0]["live"]["measured"][0];
    assert_eq!(run["unobserved"], 0);
    let flows = run["flows"].as_array().expect("a list");
    let flow = flows
        .iter()
        .find(|flow| {
            flow["received"]["payload_bytes"]
                .as_u64()
                .is_some_and(|bytes| bytes > 300_000)
        })
        .expect("the file was fetched");
    assert_eq!(flow["protocol"], "tcp");
    assert_eq!(flow["completed"], true, "{flow}");
    // What this machine was late by is part of what was measured.
    let late = run["lateness"]["max_s"].as_f64().expect("a number");
    let number = |name: &str| flow[name].as_f64().expect("a number");
    let handshake = number("handshake_rtt_s");
    assert!(handshake >= 0.02 && handshake < 0.04 + 4.0 * late, "{flow}");
    let fastest = 300_000.0 * 8.0 / 20e6;
    assert!(number("completion_s") > fastest, "{flow}");
    assert_eq!(
        flow["received"]["dropped"].as_u64() > Some(0),
        flow["received"]["retransmits"].as_u64() > Some(0),
        "what was dropped was sent again: {flow}"
    );
    assert_eq!(document["variants"][0]["groups"][0]["name"], "flows");
    for name in [
        "report.html",
        "result.json",
        "flows.csv",
        "measured.csv",
        "command.txt",
    ] {
        assert!(std::path::Path::new(&*out).join(name).exists(), "{name}");
    }
    // The capture has every frame twice, at both ends, and what was dropped once more: `import` reads it.
    let imported = Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
        .args(["import", &pcap, "--json", "--out"])
        .arg(folder.join("imported.toml"))
        .output()
        .expect("the program was built");
    assert!(imported.status.success(), "{imported:?}");
}

#[test]
fn a_full_disk_ends_the_capture_and_not_the_command() {
    if skips() {
        return;
    }
    let run = |script: &str| {
        fleetfoot(&[
            "--pcap",
            "/dev/full",
            "--far",
            "sleep 100",
            "--",
            "sh",
            "-c",
            script,
        ])
    };
    let script = "ping -c 1 -W 1 $FLEETFOOT_FAR > /dev/null; sleep 0.5; echo went on";
    let output = run(script);
    assert_eq!(text(&output.stdout), "went on\n", "{output:?}");
    let errors = text(&output.stderr);
    assert!(
        errors.contains("cannot write /dev/full: No space left on device")
            && errors.contains("the command goes on"),
        "{errors}"
    );
    assert_eq!(errors.matches("/dev/full").count(), 1, "{errors}");
    assert_eq!(output.status.code(), Some(1));
    let failed = run(&format!("{script}; exit 7"));
    assert_eq!(failed.status.code(), Some(7), "the command's own: {failed:?}");
}

#[test]
fn a_comparison_ranks_and_goes_on_where_it_stopped() {
    if skips() {
        return;
    }
    let out = folder("compare").join("out");
    let out = out.to_string_lossy();
    // The number does not depend on this machine: what is looked at here is how runs are counted and kept.
    let script = "ip route get $FLEETFOOT_FAR | grep -q 'congctl reno' && echo took 2 || echo took 3";
    let compare = |runs: &str, script: &str, quiet: &[&str]| {
        let flags = [
            "--compare",
            "drop-tail,fq-codel+cc=reno",
            "--runs",
            runs,
            "--metric",
            "took ([0-9]+)",
            "--out",
            &out,
        ];
        let rest = ["--far", "sleep 100", "--", "sh", "-c", script];
        fleetfoot(&[&flags[..], quiet, &rest[..]].concat())
    };
    let output = compare("2", script, &[]);
    assert!(output.status.success(), "{output:?}");
    let errors = text(&output.stderr);
    assert!(
        errors.contains("4 runs of") && errors.contains("congctl reno"),
        "{errors}"
    );
    let table = text(&output.stdout);
    assert!(
        table.contains("Best: fq-codel+cc=reno with 2.000 (number found by \"took ([0-9]+)\"), 33.3 %"),
        "{table}"
    );
    assert!(
        table.contains("Too few runs for good intervals: 2, 10 are enough."),
        "{table}"
    );
    let marks = || {
        let entries = std::fs::read_dir(format!("{out}/runs")).expect("runs are kept");
        let mut times: Vec<_> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                Some((entry.file_name(), entry.metadata().ok()?.modified().ok()?))
            })
            .collect();
        times.sort();
        times
    };
    let before = marks();
    assert_eq!(before.len(), 8, "four runs, and what each printed");
    let more = compare("3", script, &["--json"]);
    assert!(more.status.success(), "{more:?}");
    let document: serde_json::Value = serde_json::from_slice(&more.stdout).expect("one JSON document");
    assert_eq!(
        document["variants"][1]["live"]["measured"]
            .as_array()
            .map(Vec::len),
        Some(3)
    );
    assert_eq!(document["recommended"]["variant"], "fq-codel+cc=reno");
    let after = marks();
    assert_eq!(after.len(), 12);
    assert!(
        before.iter().all(|mark| after.contains(mark)),
        "nothing was made again"
    );
    let other = compare("2", "true", &[]);
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other.stderr).contains("holds something else"), "{other:?}");
}

#[test]
fn failed_runs_are_in_the_table() {
    if skips() {
        return;
    }
    let output = fleetfoot(&[
        "--compare",
        "drop-tail,ecn=on",
        "--runs",
        "1",
        "--far",
        "sleep 100",
        "--",
        "sh",
        "-c",
        "echo some trouble; test $(cat /proc/sys/net/ipv4/tcp_ecn) != 1",
    ]);
    assert!(output.status.success(), "{output:?}");
    let errors = text(&output.stderr);
    assert!(
        errors.contains("Run 1 of ecn=on failed: exit code 1. It printed last: some trouble"),
        "{errors}"
    );
    let table = text(&output.stdout);
    assert!(
        table.contains("1 failed") && table.contains("1 of 1 run of ecn=on failed and count in nothing"),
        "{table}"
    );
}

#[test]
fn an_interrupt_keeps_the_finished_runs() {
    if skips() {
        return;
    }
    let out = folder("interrupted").join("out");
    let mut child = Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
        .args(["shell", "--compare", "drop-tail,codel", "--runs", "100", "--out"])
        .arg(&out)
        .args(["--far", "sleep 1000", "--", "sleep", "0.2"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program was built");
    let finished = || {
        let entries = std::fs::read_dir(out.join("runs"))
            .into_iter()
            .flatten()
            .flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.ends_with(".json")).count()
    };
    let began = std::time::Instant::now();
    while finished() < 2 && began.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let id = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    let status = child.wait().expect("it ends");
    let output = child.wait_with_output().expect("it has ended");
    assert_eq!(status.code(), Some(130), "{output:?}");
    assert!(
        text(&output.stderr).contains("the same command goes on"),
        "{output:?}"
    );
    assert!(text(&output.stdout).contains("drop-tail"), "{output:?}");
    assert!(finished() < 200 && out.join("report.html").exists());
}

/// Ctrl-C goes to the whole group: the command may have ended of it before this program looks, and it is an interrupt all the same.
#[test]
fn an_interrupt_that_ends_the_command_ends_the_comparison() {
    use std::os::unix::process::CommandExt;
    if skips() {
        return;
    }
    let folder = folder("interrupted-command");
    let begun = folder.join("begun");
    let child = Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
        .args(["shell", "--compare", "drop-tail,codel", "--runs", "3"])
        .args(["--far", "sleep 1000", "--", "sh", "-c", "touch $0; sleep 1000"])
        .arg(&begun)
        .process_group(0)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program was built");
    let began = std::time::Instant::now();
    while !begun.exists() && began.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // Stopped, it sees both at once.
    let (program, group) = (child.id().to_string(), format!("-{}", child.id()));
    for [signal, to] in [["-STOP", &program], ["-INT", &group], ["-CONT", &program]] {
        let sent = Command::new("kill").args([signal, "--", to]).status();
        assert!(sent.is_ok_and(|status| status.success()), "{signal}");
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(
        text(&output.stderr).contains("Stopped before any run finished"),
        "{output:?}"
    );
}

#[test]
fn bad_numbers_and_files_that_cannot_run_are_named() {
    if skips() {
        return;
    }
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("not-executable");
    std::fs::write(&file, "#!/bin/sh\n").expect("the folder for tests can be written");
    let path = file.to_string_lossy().into_owned();
    let fleetfoot = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
            .args(arguments)
            .output()
            .expect("the program was built");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), errors)
    };
    let (code, errors) = fleetfoot(&["shell", "--far", "sleep 1000", "--", &path]);
    assert_eq!(code, Some(1), "{errors}");
    assert!(
        errors.contains("it is not an executable file") && !errors.contains("root"),
        "{errors}"
    );
    let (code, errors) = fleetfoot(&["shell", "--rate", "-5mbit", "--", "true"]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("--rate") && errors.contains("-5"), "{errors}");
}
