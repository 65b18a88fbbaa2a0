//! The clock of a capture that is set back.

use super::{Maker, exchanges, import, noted};

/// Two times two exchanges, the second time after the clock of the capture was set back by so many microseconds.
fn set_back(by: u64, gap: u64) -> Maker {
    let mut maker = Maker::new();
    let start = 3_600_000_000;
    for (number, from) in [start, start + 400_000 + gap - by].into_iter().enumerate() {
        let mut again = exchanges();
        again.packets.iter_mut().for_each(|(at, packet)| {
            *at += from;
            // Another port of the client.
            let port = if packet[15] == 1 { 20 } else { 22 };
            packet[port] = 100 + number as u8;
        });
        maker.packets.extend(again.packets);
    }
    maker
}

/// As at a first NTP synchronisation. From then on all times are right again, less by that.
#[test]
fn a_clock_that_is_set_back_goes_on_from_there() {
    let known = import(&set_back(0, 100_000).pcap());
    let known = known.1.expect("a capture").exchange_s.expect("exchanges");
    // By less than the capture is old, by more, and by much more.
    for by in [480_000, 2_000_000, 30_000_000, 3_000_000_000] {
        let (vectors, summary) = import(&set_back(by, 100_000).pcap());
        let summary = summary.expect("a capture");
        let [first, second] = &vectors[..] else {
            panic!("two connections")
        };
        assert_eq!((second.rtt_us, &second.units), (40_000, &first.units), "{by}");
        assert_eq!(summary.exchange_s.expect("exchanges"), known, "{by}");
        assert_eq!(noted(&summary, "set back"), 1, "{by}");
        // The last packet before it, and the first one behind it, at one time.
        let span = 2 * 340_100;
        assert_eq!((summary.span_s * 1e6).round() as u64, span, "{by}");
    }
    // In the middle of a connection: what passed meanwhile is taken as no time.
    let mut maker = exchanges();
    let start = 3_600_000_000;
    for (number, (at, _)) in maker.packets.iter_mut().enumerate() {
        *at += if number < 8 { start } else { start - 30_000_000 };
    }
    let (vectors, summary) = import(&maker.pcap());
    assert_eq!(vectors[0].rtt_us, 40_000);
    let spans = [vectors[0].units[2].wait_us, vectors[0].units[3].wait_us];
    assert_eq!(
        spans,
        [100_000, 0],
        "45 ms between the request and its answer were none"
    );
    assert_eq!(noted(&summary.expect("a capture"), "set back"), 1);
}
