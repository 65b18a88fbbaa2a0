//! `fleetfoot doctor`: its document, its table and its exit status.
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::process::{Command, Output};

fn doctor(flags: &[&str], path: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetfoot"));
    command.arg("doctor").args(flags);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    command.output().expect("the program was built")
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn the_document_agrees_with_the_exit_status_and_gives_advice() {
    let output = doctor(&["--json"], None);
    let document = document(&output);
    assert_eq!(document["schema"], "fleetfoot-doctor");
    let checks = document["checks"].as_array().expect("a list");
    let missing = checks
        .iter()
        .any(|check| check["works"] == false && check["required"] == true);
    assert_eq!(document["shell"], !missing);
    assert_eq!(output.status.code(), Some(i32::from(missing)), "{document:#}");
    for check in checks {
        let advice = check["advice"].as_str().expect("a text");
        assert_eq!(advice.is_empty(), check["works"] == true, "{check}");
        assert!(!check["found"].as_str().expect("a text").is_empty(), "{check}");
    }
    // What this machine has and what its kernel's version says agree.
    let kernel = document["kernel"].as_str().expect("a text");
    let version: Vec<u32> = kernel
        .split(|one: char| !one.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .take(2)
        .collect();
    let types = std::path::Path::new("/sys/kernel/btf/vmlinux").exists();
    for (id, since) in [("struct_ops", [6, 4]), ("tcx", [6, 6])] {
        let check = checks
            .iter()
            .find(|check| check["id"] == id)
            .expect("it is tried");
        if !types || version[..] < since[..] {
            assert_eq!(check["works"], false, "{kernel}: {check}");
            let needed = format!("Linux {}.{}", since[0], since[1]);
            assert!(
                check["advice"].as_str().expect("a text").contains(&needed),
                "{check}"
            );
        }
    }
    assert!(document["timers"]["lateness"]["p99_s"].is_number());
    assert!(document["measured"].is_null(), "only when asked for");
    let shell = fleetfoot_live::Namespace::available().is_ok();
    assert!(!shell || document["shell"] == true, "{document:#}");
}

#[test]
fn what_is_missing_is_named_with_what_to_do() {
    let output = doctor(&[], Some("/nonexistent"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("Install the Debian package iproute2."), "{text}");
    assert!(text.contains("`fleetfoot shell` does not work here"), "{text}");
    assert!(text.contains("sleeps end late"), "{text}");
}
