//! The commit that results name; as in the program.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    commit::emit();
}

#[path = "../lab/commit.rs"]
mod commit;
