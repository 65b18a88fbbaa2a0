//! Scripts that `make` calls: what they say and do on machines that lack something.

#![cfg(target_os = "linux")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// A folder of programs that stands for a machine.
fn machine(name: &str, programs: &[(&str, &str)]) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    for (program, text) in programs {
        let file = folder.join(program);
        std::fs::write(&file, format!("#!/bin/bash\n{text}\n")).expect("it can be written");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("it was made here");
    }
    folder
}

/// What a script of the tree prints on that machine.
fn said(script: &str, machine: &Path) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new("/bin/bash")
        .arg(root.join("scripts").join(script))
        .env("PATH", machine)
        .output()
        .expect("there is a shell");
    assert!(output.status.success(), "{script}");
    String::from_utf8(output.stdout).expect("it is text")
}

#[test]
fn setup_installs_what_a_release_has_and_names_the_rest() {
    // A release without Chromium, where a list with it fails as a whole.
    let apt = "for word in \"$@\"; do [ \"$word\" != chromium ] || exit 100; done";
    let lacking = machine("setup-lacking", &[("id", "echo 0"), ("apt-get", apt)]);
    let said_there = said("setup.sh", &lacking);
    let [installed, missing] = ["installed", "not to be had here"].map(|what| {
        let line = said_there.lines().find(|line| line.contains(what));
        line.unwrap_or_else(|| panic!("{what}: {said_there}")).to_owned()
    });
    assert!(
        installed.contains("tshark") && installed.contains("nftables") && !installed.contains("chromium"),
        "{installed}"
    );
    assert!(missing.ends_with("will skip: chromium"), "{missing}");

    let whole = machine("setup-whole", &[("id", "echo 0"), ("apt-get", "exit 0")]);
    let said_there = said("setup.sh", &whole);
    assert!(
        said_there.lines().count() == 1 && said_there.contains("chromium"),
        "{said_there}"
    );
    let other = machine("setup-other", &[("id", "echo 1000")]);
    assert!(said("setup.sh", &other).starts_with("setup: not installed"));
}

#[test]
fn tests_in_a_browser_say_what_they_need() {
    for (name, programs, lacks) in [
        ("browser-none", &["dirname"][..], "needs chromium, node and npm"),
        ("browser-no-node", &["dirname", "chromium"], "needs node and npm"),
        ("browser-no-npm", &["dirname", "chromium", "node"], "needs npm"),
        (
            "browser-no-chromium",
            &["dirname", "npm", "node"],
            "needs chromium",
        ),
    ] {
        let here = std::fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
        let scripts = format!("echo {}/scripts", here.expect("the tree is there").display());
        let programs: Vec<(&str, &str)> = programs
            .iter()
            .map(|program| (*program, scripts.as_str()))
            .collect();
        let place = machine(name, &programs);
        for script in ["test-report.sh", "test-site.sh", "test-explorer.sh"] {
            let line = said(script, &place);
            let expected = format!("skipped: {lacks} (CONTRIBUTING.md, \"Pages in a browser\")\n");
            assert_eq!(line, expected, "{script}");
        }
    }
}
