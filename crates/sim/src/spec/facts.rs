//! Facts of traffic kinds: what other parts need to know of a kind without knowing which it is.

use super::Distribution;

/// What is known of a traffic kind whatever its parameters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its name in scenario files and results.
    pub name: &'static str,
    /// What carries its data.
    pub transport: Transport,
    /// Its connections can be ended by a relay. Datagrams and recorded delays pass a relay by.
    pub relayable: bool,
    /// Somebody waits for it: unless the scenario says otherwise, time counts and not goodput.
    pub latency_sensitive: bool,
    /// Its connections always have data.
    pub greedy: bool,
    /// Its flows last for most of a run, so a trace shows those that began before the warm-up was over.
    pub long_lived: bool,
    /// A flow that did not complete is censored: it was expected to complete.
    pub completes: bool,
    /// Of a flow that completed it is noted when its last byte was acknowledged.
    pub notes_acked: bool,
    /// Each flow is a connection of its own that carries one transfer.
    pub flow_is_connection: bool,
    /// Users ask again only after they were answered, so who is served sooner asks for more.
    pub closed_loop: bool,
    /// An application of it acts because of what arrives.
    pub reacts: bool,
    /// Data flows both ways unless the scenario says otherwise.
    pub both_ways: bool,
    /// Its flows name their hosts themselves.
    pub lists_hosts: bool,
    /// Users, connections or streams of it start one after the other; of other kinds flows come as they arrive.
    pub has_members: bool,
    /// The times by which variants are compared.
    pub compared: Compared,
    /// What counts as lost.
    pub losses: Losses,
    /// The measure, one of `measures`, that is the share of the time in which nothing moves for those who watch.
    pub stood_still: Option<&'static str>,
    /// What else its applications measure; samples are in [`crate::output::GroupOutput::measures`].
    pub measures: &'static [Measure],
}

/// What the applications of one kind measure and no other does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Its name in results, with the unit.
    pub name: &'static str,
    /// What a sample is.
    pub doc: &'static str,
}

/// What carries the data of a traffic kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP connections.
    Tcp,
    /// TFRC streams.
    Tfrc,
    /// QUIC connections.
    Quic,
    /// Datagrams without congestion control.
    Datagrams,
}

/// The times by which variants are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// From the start of a flow to its completion.
    Completion,
    /// From each write, or from the sending of each datagram, to its arrival.
    Delivery,
    /// As completion; if the flow was lost, until the next one of its stream completed.
    CompletionOfNext,
}

/// What counts as lost, of kinds whose data nobody sends again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Losses {
    /// Nothing: what is lost is sent again, or nobody counts it.
    Repaired,
    /// Datagrams that did not arrive.
    Datagrams,
    /// Flows that did not complete.
    Flows,
}

/// How a group goes on by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace<'a> {
    /// Its times are prescribed, or it comes to an end.
    Prescribed,
    /// Each round begins this long after the one before (s).
    Pause(&'a Distribution),
    /// As soon as it can.
    Ceaseless,
}

impl Facts {
    /// Whether each flow is a TCP connection that carries many messages, whose delivery times are the ones that count.
    pub const fn is_message_stream(&self) -> bool {
        matches!(
            (self.compared, self.transport),
            (Compared::Delivery, Transport::Tcp)
        )
    }
}

/// A kind whose transfers use TCP, one connection each, without anybody waiting for them.
pub(super) const TCP: Facts = Facts {
    name: "",
    transport: Transport::Tcp,
    relayable: true,
    latency_sensitive: false,
    greedy: false,
    long_lived: false,
    completes: true,
    notes_acked: true,
    flow_is_connection: false,
    closed_loop: false,
    reacts: false,
    both_ways: false,
    lists_hosts: false,
    has_members: true,
    compared: Compared::Completion,
    losses: Losses::Repaired,
    stood_still: None,
    measures: &[],
};

/// A kind whose datagrams nobody sends again.
pub(super) const DATAGRAMS: Facts = Facts {
    transport: Transport::Datagrams,
    relayable: false,
    completes: false,
    ..TCP
};
