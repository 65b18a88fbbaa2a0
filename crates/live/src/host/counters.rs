//! What a host counted. Every packet that is not taken is counted by its reason.

use fleetfoot_core::wire;

counters! {
    /// Counts of a [`Host`](super::Host) since it was made.
    Counters {
        packets_in, "Packets read from the device.";
        bytes_in, "Bytes of them.";
        packets_out, "Packets written to the device.";
        bytes_out, "Bytes of them.";
        device_full, "Packets that the device did not take.";
        truncated, "Packets that end before their headers say so.";
        not_ip, "Packets that are neither IPv4 nor IPv6.";
        bad_header, "Packets with an impossible header length.";
        bad_checksum, "Packets with a wrong checksum.";
        bad_option, "Packets with a TCP option of an impossible length.";
        fragments, "Fragments: they are not put together.";
        other_protocol, "Packets of a protocol that is not spoken here.";
        other_address, "Packets for somebody else.";
        icmp_errors, "ICMP errors handed to a connection.";
        echo_replies, "Pings answered.";
        resets_out, "Resets for segments that no connection or listener wanted.";
        accepted, "Connections accepted.";
        opened, "Connections opened from here.";
        accept_queue_full, "Handshakes refused because too many connections waited to be accepted.";
        syn_queue_full, "SYNs dropped because too many connections were half-open.";
        syn_cookies, "SYNs answered with a cookie because too many connections were half-open.";
        time_wait_full, "Connections that ended without TIME-WAIT because too many others were in it.";
        most_bytes_held, "Most bytes of buffers in use at once.";
        lost_bytes, "Bytes that were to be sent and were not there: an error of this program.";
    }
}

impl Counters {
    /// Packets that could not be read.
    pub const fn malformed(&self) -> u64 {
        self.truncated + self.not_ip + self.bad_header + self.bad_checksum + self.bad_option + self.fragments
    }

    pub(super) fn count(&mut self, error: wire::Error) {
        let count = match error {
            wire::Error::Truncated => &mut self.truncated,
            wire::Error::Version => &mut self.not_ip,
            wire::Error::Checksum => &mut self.bad_checksum,
            wire::Error::Option => &mut self.bad_option,
            wire::Error::Fragment => &mut self.fragments,
            wire::Error::Protocol => &mut self.other_protocol,
            wire::Error::Header
            | wire::Error::Options
            | wire::Error::Buffer
            | wire::Error::TooLong
            | wire::Error::Payload
            | wire::Error::Families => &mut self.bad_header,
        };
        *count += 1;
    }
}
