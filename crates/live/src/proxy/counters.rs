//! What a proxy counted.

use super::request::Refusal;

counters! {
    /// Counts of a [`Proxy`](super::Proxy) since it was made.
    Counters {
        accepted, "Connections of clients that were taken.";
        not_allowed, "Connections of clients whose address is not on the list, reset at once.";
        own, "Connections to this proxy itself, refused.";
        plain, "Connections forwarded to the fixed target.";
        socks, "Requests of SOCKS5 that were complete.";
        http, "Requests of HTTP CONNECT that were complete.";
        malformed, "Requests that could not be read, or ask for what is not spoken here.";
        too_slow, "Requests that were not complete in time.";
        abandoned, "Clients that went before they were connected.";
        connected, "Connections to targets.";
        forbidden, "Targets that are not connected to: this proxy, loopback addresses, no host.";
        unknown_name, "Names without an address.";
        refused, "Targets that refused.";
        unreachable, "Targets without a way to them.";
        timed_out, "Targets that did not answer in time.";
        busy, "Targets not tried because the proxy lacked ports, descriptors or time to look up names.";
        finished, "Connections that both ends had finished.";
        reset_by_client, "Connections that the client's end broke off; the target's end was reset.";
        reset_by_target, "Connections that the target's end broke off; the client's end was reset.";
        bytes_to_target, "Bytes taken from clients.";
        bytes_to_client, "Bytes taken from targets.";
        open, "Connections of clients that are open now.";
        most_open, "The most that were open at once.";
        most_buffered, "The most bytes at once that were read at one end and waited for room at the other.";
        accept_failures, "Connections that could not be taken: the process had no descriptor left.";
    }
}

impl Counters {
    /// Counts a refusal by its reason.
    pub(super) const fn refuse(&mut self, refusal: Refusal) {
        let count = match refusal {
            Refusal::Malformed
            | Refusal::TooLong
            | Refusal::Version
            | Refusal::Method
            | Refusal::Command
            | Refusal::AddressType
            | Refusal::Authentication => &mut self.malformed,
            Refusal::TooSlow => &mut self.too_slow,
            Refusal::NotAllowed => &mut self.forbidden,
            Refusal::UnknownName => &mut self.unknown_name,
            Refusal::Refused => &mut self.refused,
            Refusal::NetUnreachable | Refusal::HostUnreachable => &mut self.unreachable,
            Refusal::TimedOut => &mut self.timed_out,
            Refusal::Busy => &mut self.busy,
        };
        *count += 1;
    }
}
