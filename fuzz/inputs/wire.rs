//! Any bytes through the packet parser: nothing panics, and what was parsed can be written and read again.

use fleetfoot_core::superpacket::Layout;
use fleetfoot_core::wire;

/// One input of the fuzzer.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(parsed) = wire::parse(bytes) else { return };
    let payload = &bytes[parsed.payload.clone()];
    for layout in [Layout::A, Layout::LOCAL, Layout::C] {
        let mark = layout.decode(&parsed.segment);
        let mut copy = parsed.segment;
        layout.strip(&mut copy);
        assert!(layout.decode(&copy).is_regular());
        // What a packet says can be said again, but for layout A on a packet that may be fragmented.
        if layout.mark(&mut copy, mark).is_ok() {
            assert_eq!(layout.decode(&copy), mark);
        }
    }
    assert_eq!(payload.len(), parsed.segment.payload as usize);
    // Headers with options we do not write come back shorter, so only what is written must be readable.
    let mut small = [0; 2048];
    let mut large;
    let buffer = if bytes.len() < 1500 {
        &mut small[..]
    } else {
        large = vec![0; 70_000];
        &mut large[..]
    };
    if let Ok(len) = wire::encode(
        buffer,
        &parsed.segment,
        parsed.source,
        parsed.destination,
        payload,
    ) {
        let again = wire::parse(&buffer[..len]).expect("what we write is well formed");
        assert_eq!(
            (again.source, again.destination),
            (parsed.source, parsed.destination)
        );
        assert_eq!(again.segment.seq, parsed.segment.seq);
        assert_eq!(again.segment.payload, parsed.segment.payload);
        assert_eq!(
            Layout::C.decode(&again.segment),
            Layout::C.decode(&parsed.segment)
        );
        assert_eq!(&buffer[again.payload], payload);
    }
}
