//! With the feature `bpf`: compiles the programs of `bpf/` with clang, and their rules a second time for this machine, for the tests.

use std::path::PathBuf;
use std::process::Command;

/// Programs for the kernel, one file each.
const PROGRAMS: [&str; 5] = ["cdg", "newcwv", "spread", "options", "mark"];

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    let linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if std::env::var_os("CARGO_FEATURE_BPF").is_none() || !linux {
        return;
    }
    if let Err(problem) = compile() {
        println!("cargo::error={problem}");
    }
}

fn compile() -> Result<(), String> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let machine = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let clang = clang()?;
    for program in PROGRAMS {
        let mut command = Command::new(&clang);
        command
            .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror"])
            .arg("-DSTRUCT_OPS_LINK=\".struct_ops.link\"")
            // Debian's place for <asm/types.h>.
            .arg(format!("-idirafter/usr/include/{machine}-linux-gnu"))
            .arg("-c")
            .arg(format!("bpf/{program}.bpf.c"))
            .arg("-o")
            .arg(out.join(format!("{program}.bpf.o")));
        run(command)?;
    }
    let rules = out.join("rules.o");
    let mut command = Command::new(&clang);
    command
        .args([
            "-O2",
            "-g",
            "-Wall",
            "-Werror",
            "-fPIC",
            "-c",
            "bpf/rules.c",
            "-o",
        ])
        .arg(&rules);
    run(command)?;
    println!("cargo::rustc-link-arg-tests={}", rules.display());
    Ok(())
}

/// `$CLANG`, or the first that is there.
fn clang() -> Result<String, String> {
    let named = std::env::var("CLANG").ok();
    let numbered = (14..=22).rev().map(|version| format!("clang-{version}"));
    named
        .into_iter()
        .chain([String::from("clang")])
        .chain(numbered)
        .find(|name| {
            Command::new(name)
                .arg("--version")
                .output()
                .is_ok_and(|output| output.status.success())
        })
        .ok_or_else(|| {
            String::from(
                "the feature bpf needs clang (Debian packages: clang libbpf-dev libelf-dev zlib1g-dev pkg-config make); $CLANG names another one",
            )
        })
}

fn run(mut command: Command) -> Result<(), String> {
    let output = command
        .output()
        .map_err(|cause| format!("clang cannot be run: {cause}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said
        .lines()
        .find(|line| line.contains("error"))
        .unwrap_or("clang failed");
    let hint = if first.contains("file not found") {
        " (Debian packages: libbpf-dev linux-libc-dev)"
    } else {
        ""
    };
    Err(format!("{first}{hint}"))
}
