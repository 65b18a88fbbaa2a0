//! The commit that results name, as in the program, and the examples.

#[path = "../lab/commit.rs"]
mod commit;
#[path = "../cli/examples.rs"]
mod examples;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    examples::write();
    commit::emit();
}
