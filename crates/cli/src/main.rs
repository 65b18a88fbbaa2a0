//! The program `fleetfoot`.

fn main() {}
