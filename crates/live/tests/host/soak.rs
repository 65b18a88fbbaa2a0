//! Gibibytes over every kind of path, in parts. `FLEETFOOT_SOAK_GIB` says how many (8), `FLEETFOOT_SOAK_STATE` names a file in which
//! finished parts are noted, so that a run that was stopped goes on where it was.

use crate::damage::Damage;
use crate::{Transferred, kernel_to_ours, ours_to_kernel, skips};
use std::fs::OpenOptions;
use std::io::Write;
use std::time::Instant;

/// A part: what the path does, how many connections, how many MiB they move all together in each direction.
const PARTS: [(Damage, usize, u64); 9] = [
    (Damage::NONE, 1, 128),
    (Damage::NONE, 16, 128),
    (Damage::NONE, 250, 64),
    (
        Damage {
            loss: 0.01,
            ..Damage::NONE
        },
        100,
        64,
    ),
    (
        Damage {
            loss: 0.05,
            ..Damage::NONE
        },
        200,
        24,
    ),
    (
        Damage {
            loss: 0.10,
            ..Damage::NONE
        },
        200,
        8,
    ),
    (
        Damage {
            twice: 0.05,
            ..Damage::NONE
        },
        16,
        48,
    ),
    (
        Damage {
            late: 0.05,
            ..Damage::NONE
        },
        16,
        48,
    ),
    (
        Damage {
            bits: 0.01,
            ..Damage::NONE
        },
        100,
        32,
    ),
];

#[test]
#[ignore = "takes minutes: make test-all and make soak-live run it"]
fn gibibytes_over_every_kind_of_path() {
    if skips() {
        return;
    }
    let wanted =
        std::env::var("FLEETFOOT_SOAK_GIB").map_or(8, |text| text.parse::<u64>().expect("GiB")) << 30;
    let state = std::env::var_os("FLEETFOOT_SOAK_STATE");
    let noted = state.as_ref().map_or_else(String::new, |path| {
        std::fs::read_to_string(path).unwrap_or_default()
    });
    let (mut part, mut done) = (0_usize, 0_u64);
    for line in noted.lines() {
        // Each line: number of the part, bytes.
        if let Some((number, bytes)) = line.split_once(' ') {
            part = part.max(number.parse::<usize>().map_or(0, |number| number + 1));
            done += bytes.parse::<u64>().unwrap_or(0);
        }
    }
    if part > 0 {
        println!("goes on with part {part}: {:.2} GiB were done before", gib(done));
    }
    while done < wanted {
        let (damage, connections, mebibytes) = PARTS[part % PARTS.len()];
        let round = part / PARTS.len();
        let (v6, ours) = (round % 2 == 1, round / 2 % 2 == 1);
        let each = (mebibytes << 20) / connections as u64;
        let (number, veth) = (1000 + part as u32, part % 7 == 6);
        let began = Instant::now();
        let Transferred { packets, .. } = if ours {
            ours_to_kernel(number, veth, damage, v6, connections, each)
        } else {
            kernel_to_ours(number, veth, damage, v6, connections, each)
        };
        // There and back, each byte compared.
        let bytes = 2 * each * connections as u64;
        done += bytes;
        let took = began.elapsed();
        println!(
            "part {part}: {} over IPv{}{}, {connections} connections, {damage:?}: {:.0} MiB in {:.2} s, {:.0} ns per packet; {:.2} of {:.0} GiB",
            if ours {
                "ours to the kernel's echo"
            } else {
                "the kernel's to our echo"
            },
            if v6 { 6 } else { 4 },
            if veth { ", veth" } else { "" },
            bytes as f64 / f64::from(1 << 20),
            took.as_secs_f64(),
            took.as_nanos() as f64 / packets.max(1) as f64,
            gib(done),
            gib(wanted),
        );
        if let Some(path) = &state {
            let mut file = OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .expect("a file for the state");
            writeln!(file, "{part} {bytes}").expect("room for a line");
        }
        part += 1;
    }
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}
