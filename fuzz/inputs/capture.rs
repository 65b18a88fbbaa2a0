//! Any bytes as a capture or a file of connection vectors: nothing panics, memory is bounded; what is imported can be read again.

use fleetfoot_lab::import::capture::{Options, read};
use fleetfoot_lab::import::link_layer;
use fleetfoot_lab::import::scenario;
use fleetfoot_lab::workload::vectors;

/// One input of the fuzzer.
pub(crate) fn run(bytes: &[u8]) {
    let options = Options {
        most_open: 8,
        keep_addresses: bytes.len().is_multiple_of(2),
        ..Options::default()
    };
    let mut all = Vec::new();
    match read(bytes, &options, |over| all.push(over.vector), |_| true) {
        Ok(summary) => {
            assert_eq!(summary.connections, all.len() as u64);
            assert!(!summary.to_text().is_empty());
            let files = scenario::parts(&summary)
                .into_iter()
                .map(|part| format!("{}.cvec", part.name));
            let files: Vec<String> = files.collect();
            let text = scenario::text("fuzz", &files, &summary, &scenario::Controllers::default());
            assert!(text.contains("replay"));
        }
        Err(message) => assert!(!message.is_empty()),
    }
    for vector in all {
        let mut again = Vec::new();
        let read = vectors::read_from(vector.to_string().as_bytes(), |read| again.push(read));
        // Rates have six digits in the text.
        let same = again.iter().map(ToString::to_string).eq([vector.to_string()]);
        assert!(read.is_ok() && same, "what is written is read");
    }
    let _ = vectors::read_from(bytes, |_| ());
    for link_type in [0, 1, 12, 101, 108, 113, 228, 229, 276] {
        let _ = link_layer::parse(link_type, bytes, bytes.len() as u32);
    }
}
