//! The commit the program was built from, for `--version`, its date, for manual pages (neither outside a repository), and the examples.

#[path = "../lab/commit.rs"]
mod commit;
mod examples;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    examples::write();
    let commit = commit::emit();
    let date = commit::git(&["log", "-1", "--format=%cs"]).unwrap_or_default();
    println!("cargo::rustc-env=FLEETFOOT_DATE={date}");
    let commit = match commit.as_str() {
        "" => String::new(),
        commit => format!(" ({commit})"),
    };
    println!(
        "cargo::rustc-env=FLEETFOOT_VERSION={}{commit}",
        std::env::var("CARGO_PKG_VERSION").unwrap_or_default()
    );
}
