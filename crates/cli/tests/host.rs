//! `fleetfoot host`: serving and fetching with our TCP. Needs namespaces; says so and skips without.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
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

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

/// A folder with two megabytes in a file, gone when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fleetfoot-host-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        let content: Vec<u8> = (0..2_000_000_u32)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        std::fs::write(path.join("file"), content).expect("a file");
        Folder(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn fleetfoot(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
        .current_dir(folder)
        .env("FLEETFOOT", env!("CARGO_BIN_EXE_fleetfoot"))
        .args(arguments)
        .output()
        .expect("the program was built")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_browser_gets_files_lists_ranges_and_refusals() {
    if skips() || !has("curl") {
        return;
    }
    let folder = Folder::new("serve");
    let script = r#"
        curl -sS "${FLEETFOOT_URL}file" | cmp - file && echo whole
        curl -sS -g "http://[$FLEETFOOT_HOST6]/file" | cmp - file && echo whole6
        curl -sS -r 1000-1999 "${FLEETFOOT_URL}file" | wc -c
        curl -sS -I "${FLEETFOOT_URL}file" | grep -c "Content-Length: 2000000"
        curl -sS -o /dev/null -o /dev/null -w "%{http_code} " "${FLEETFOOT_URL}none" "${FLEETFOOT_URL}%2e%2e/etc/passwd" --path-as-is
        curl -sS -o /dev/null -w "%{http_code} " -X POST -d x=1 "${FLEETFOOT_URL}file"
        curl -sS -o /dev/null -w "%{http_code} " -X DELETE "${FLEETFOOT_URL}file"
        curl -sS -o /dev/null -w "%{http_code}\n" -r 9999999- "${FLEETFOOT_URL}file"
        curl -sS "$FLEETFOOT_URL" | grep -c '"./file"'
        curl -sS -o /dev/null -o /dev/null -w "%{num_connects}\n" "${FLEETFOOT_URL}file" "${FLEETFOOT_URL}file" | tail -1
        exit 7
    "#;
    for veth in [false, true] {
        let flag = if veth { "--veth" } else { "--mtu=1500" };
        let output = fleetfoot(
            folder.path(),
            &["host", "serve", ".", flag, "--", "sh", "-c", script],
        );
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        assert_eq!(
            text(&output),
            "whole\nwhole6\n1000\n1\n404 404 413 405 416\n1\n0\n",
            "{output:?}"
        );
    }
}

#[test]
fn what_is_fetched_is_what_was_served_and_json_says_how() {
    if skips() {
        return;
    }
    let folder = Folder::new("fetch");
    // Ours serves, ours fetches; both in the network of the one that serves.
    let script = r#"
        FLEETFOOT_ADDRESS= ; unset FLEETFOOT_ADDRESS
        echo 1 > /proc/sys/net/ipv4/ip_forward
        "$FLEETFOOT" host fetch "${FLEETFOOT_URL}file" -o got --set tcp.congestion_control=reno --json > document
        echo $?
        cmp got file && echo same
        "$FLEETFOOT" host fetch "${FLEETFOOT_URL}none" -o nothing; echo $?
        "$FLEETFOOT" host fetch "http://$FLEETFOOT_HOST:81/" -o nothing 2>&1 | grep -c ECONNREFUSED
    "#;
    let output = fleetfoot(
        folder.path(),
        &["host", "serve", ".", "--json", "--", "sh", "-c", script],
    );
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("0\nsame\n") && said.contains("answered 404\n1\n1\n"),
        "{said}"
    );
    let served: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(
        (&served["schema"], &served["role"]),
        (&"fleetfoot-host".into(), &"serve".into())
    );
    assert_eq!(
        (&served["served"]["answered"], &served["served"]["refused"]),
        (&1.into(), &1.into())
    );
    let document = std::fs::read(folder.path().join("document")).expect("it was written");
    let fetched: serde_json::Value = serde_json::from_slice(&document).expect("one document");
    assert_eq!(
        (&fetched["bytes"], &fetched["status"]),
        (&2_000_000.into(), &200.into())
    );
    assert!(fetched["took_s"].as_f64() >= fetched["first_byte_s"].as_f64());
}

#[test]
fn both_ends_of_a_described_link_can_be_ours() {
    if skips() || !has("curl") {
        return;
    }
    let folder = Folder::new("link");
    let far = format!("{} host serve .", env!("CARGO_BIN_EXE_fleetfoot"));
    let script = r#"
        curl -sS --retry 5 --retry-connrefused "http://$FLEETFOOT_HOST/file" | cmp - file && echo kernel
        "$FLEETFOOT" host fetch "http://$FLEETFOOT_HOST/file" -o got; cmp got file && echo ours
        "$FLEETFOOT" host fetch "http://[$FLEETFOOT_HOST6]/file" -o got6; cmp got6 file && echo ours6
    "#;
    let output = fleetfoot(
        folder.path(),
        &[
            "shell", "--rate", "50mbit", "--delay", "2ms", "--far", &far, "--", "sh", "-c", script,
        ],
    );
    assert_eq!(text(&output), "kernel\nours\nours6\n", "{output:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_ends_a_server_that_is_alone() {
    if skips() {
        return;
    }
    let folder = Folder::new("interrupt");
    let script = r#"
        "$FLEETFOOT" host serve . --listen 8000 2> said &
        while ! grep -q ":8000" said; do sleep 0.05; done
        kill -INT $!
        wait $!; echo $?
        ip -o link | grep -c ffh
        tail -1 said | cut -c1-8
    "#;
    // In a network of its own, so that nothing of this machine is touched. A background command of sh ignores interrupts.
    let script = format!("trap - INT; set -m\n{script}");
    let output = fleetfoot(
        folder.path(),
        &["host", "serve", "discard", "--veth", "--", "bash", "-c", &script],
    );
    // The veth pair of the outer host is there, the device of the inner one is not.
    assert!(text(&output).starts_with("0\n1\npackets:"), "{output:?}");
}
