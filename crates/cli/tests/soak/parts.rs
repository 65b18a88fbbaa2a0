//! A long run in parts: finished parts are noted in the file that `FLEETFOOT_SOAK_STATE` names, so that a run that was stopped goes on
//! where it was. `FLEETFOOT_SOAK_GIB` says how many GiB are to pass each way.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Instant;

/// What a part moved, and what it was.
pub(crate) struct Done {
    /// Bytes there and back.
    pub(crate) bytes: [u64; 2],
    pub(crate) what: String,
}

/// Plays parts until as much has passed each way as the environment asks for, `default` GiB without it.
pub(crate) fn play(name: &str, default: u64, mut part: impl FnMut(usize) -> Done) {
    let wanted =
        std::env::var("FLEETFOOT_SOAK_GIB").map_or(default, |text| text.parse::<u64>().expect("GiB")) << 30;
    let state = std::env::var_os("FLEETFOOT_SOAK_STATE");
    let noted = state.as_ref().map_or_else(String::new, |path| {
        std::fs::read_to_string(path).unwrap_or_default()
    });
    let (mut number, mut done) = (0_usize, [0_u64; 2]);
    for line in noted.lines() {
        // Each line: number of the part, bytes there, bytes back.
        let mut words = line.split(' ').map(str::parse::<u64>);
        if let (Some(Ok(part)), Some(Ok(there)), Some(Ok(back))) = (words.next(), words.next(), words.next())
        {
            number = number.max(part as usize + 1);
            done = [done[0] + there, done[1] + back];
        }
    }
    if number > 0 {
        println!(
            "{name} goes on with part {number}: {:.2} GiB there and {:.2} back were done before",
            gib(done[0]),
            gib(done[1])
        );
    }
    while done[0] < wanted || done[1] < wanted {
        let began = Instant::now();
        let Done { bytes, what } = part(number);
        done = [done[0] + bytes[0], done[1] + bytes[1]];
        let took = began.elapsed().as_secs_f64();
        println!(
            "{name} part {number}: {what}: {:.0} MiB there, {:.0} back in {took:.1} s, {:.0} MiB/s each way; {:.2} and {:.2} of {:.0} GiB",
            mib(bytes[0]),
            mib(bytes[1]),
            mib(bytes[0].min(bytes[1])) / took,
            gib(done[0]),
            gib(done[1]),
            gib(wanted),
        );
        if let Some(path) = &state {
            let mut file = OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .expect("a file for the state");
            writeln!(file, "{number} {} {}", bytes[0], bytes[1]).expect("room for a line");
        }
        number += 1;
    }
}

pub(crate) fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}
