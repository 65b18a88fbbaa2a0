//! Socket options: their names, what a socket remembers, `getsockopt` and `setsockopt`.
//!
//! **Source.** `socket(7)`, `tcp(7)`, `ip(7)`; limits as Linux checks them.

use super::{Body, Errno, Fd, Stack};
use crate::cc::AnyController;
use crate::tcp::{KeepAlive, Setting, State, WriteFlags};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::string::{String, ToString};

macro_rules! options {
    ($($name:ident = ($level:literal, $number:literal, $text:literal), $doc:literal;)*) => {
        /// An option of a socket.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum SocketOption {
            $(#[doc = $doc] $name,)*
        }

        impl SocketOption {
            /// Every one.
            pub const ALL: &'static [SocketOption] = &[$(SocketOption::$name,)*];

            /// Its name in the C headers.
            pub const fn name(self) -> &'static str {
                match self {
                    $(SocketOption::$name => $text,)*
                }
            }

            /// Linux's level and number.
            pub const fn number(self) -> (i32, i32) {
                match self {
                    $(SocketOption::$name => ($level, $number),)*
                }
            }
        }
    };
}

options! {
    ReuseAddress = (1, 2, "SO_REUSEADDR"), "Bind although the port is in TIME-WAIT, or held by another that may be shared.";
    ReusePort = (1, 15, "SO_REUSEPORT"), "Several sockets may bind one address.";
    SendBuffer = (1, 7, "SO_SNDBUF"), "Send buffer, bytes; what is set is doubled.";
    ReceiveBuffer = (1, 8, "SO_RCVBUF"), "Receive buffer, bytes; what is set is doubled.";
    ReceiveLow = (1, 18, "SO_RCVLOWAT"), "Bytes that must be there before a socket is readable.";
    Error = (1, 4, "SO_ERROR"), "The pending error, which is cleared.";
    Linger = (1, 13, "SO_LINGER"), "What `close` does with unsent data.";
    KeepAlive = (1, 9, "SO_KEEPALIVE"), "Probe an idle connection.";
    OutOfBandInline = (1, 10, "SO_OOBINLINE"), "Urgent data stays in the stream.";
    AcceptConnections = (1, 30, "SO_ACCEPTCONN"), "Whether the socket listens.";
    NoDelay = (6, 1, "TCP_NODELAY"), "Nagle's algorithm off.";
    Cork = (6, 3, "TCP_CORK"), "Only full segments leave.";
    MaxSegment = (6, 2, "TCP_MAXSEG"), "Largest segment.";
    UserTimeout = (6, 18, "TCP_USER_TIMEOUT"), "Longest time without acknowledgment, ms.";
    SynCount = (6, 7, "TCP_SYNCNT"), "SYN retransmissions.";
    KeepIdle = (6, 4, "TCP_KEEPIDLE"), "Idle time before keep-alive probes, s.";
    KeepInterval = (6, 5, "TCP_KEEPINTVL"), "Time between keep-alive probes, s.";
    KeepCount = (6, 6, "TCP_KEEPCNT"), "Keep-alive probes before giving up.";
    Linger2 = (6, 8, "TCP_LINGER2"), "How long a closed socket stays in FIN-WAIT-2, s; -1: not at all.";
    DeferAccept = (6, 9, "TCP_DEFER_ACCEPT"), "Accept only when data arrived, or after so many seconds.";
    WindowClamp = (6, 10, "TCP_WINDOW_CLAMP"), "Largest window offered.";
    FastOpen = (6, 23, "TCP_FASTOPEN"), "Serve Fast Open with so many pending connections.";
    FastOpenConnect = (6, 30, "TCP_FASTOPEN_CONNECT"), "`connect` waits for the first write.";
    FastOpenNoCookie = (6, 34, "TCP_FASTOPEN_NO_COOKIE"), "Fast Open without a cookie.";
    Congestion = (6, 13, "TCP_CONGESTION"), "Congestion control, by name.";
    QuickAck = (6, 12, "TCP_QUICKACK"), "Acknowledge at once.";
    NotSentLow = (6, 25, "TCP_NOTSENT_LOWAT"), "Unsent bytes above which a socket is not writable.";
    Inq = (6, 36, "TCP_INQ"), "Report the bytes left to read.";
    Tos = (0, 1, "IP_TOS"), "Traffic class of packets sent.";
    Ttl = (0, 2, "IP_TTL"), "Time to live of packets sent.";
    MtuDiscover = (0, 10, "IP_MTU_DISCOVER"), "Path MTU discovery.";
    ReceiveErrors = (0, 11, "IP_RECVERR"), "ICMP errors end the connection at once.";
    V6TrafficClass = (41, 67, "IPV6_TCLASS"), "Traffic class of packets sent.";
    V6HopLimit = (41, 16, "IPV6_UNICAST_HOPS"), "Hop limit of packets sent.";
    V6Only = (41, 26, "IPV6_V6ONLY"), "No IPv4 on this socket.";
    V6ReceiveErrors = (41, 25, "IPV6_RECVERR"), "ICMP errors end the connection at once.";
}

impl SocketOption {
    /// The option with Linux's level and number.
    pub fn by_number(level: i32, number: i32) -> Option<SocketOption> {
        let known = SocketOption::ALL.iter().copied();
        known
            .into_iter()
            .find(|option| option.number() == (level, number))
    }

    /// The option the C headers call `name`.
    pub fn by_name(name: &str) -> Option<SocketOption> {
        SocketOption::ALL
            .iter()
            .copied()
            .find(|option| option.name() == name)
    }
}

/// Value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// A number; errors are their [`Errno::number`].
    Int(i32),
    /// `struct linger`.
    Linger {
        /// Whether `close` lingers.
        on: bool,
        /// For how long, seconds.
        seconds: i32,
    },
    /// A name.
    Name(String),
}

impl OptionValue {
    fn int(&self) -> Result<i32, Errno> {
        match self {
            OptionValue::Int(value) => Ok(*value),
            OptionValue::Linger { .. } | OptionValue::Name(_) => Err(Errno::EINVAL),
        }
    }
}

/// What a socket remembers of its options; accepted sockets inherit the listener's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) reuse_address: bool,
    pub(super) reuse_port: bool,
    /// `SO_SNDBUF`, doubled; `None`: tuned.
    pub(super) send_buffer: Option<u64>,
    /// `SO_RCVBUF`, doubled; `None`: tuned.
    pub(super) receive_buffer: Option<u64>,
    pub(super) receive_low: u64,
    /// `SO_LINGER`: seconds, if on.
    pub(super) linger: Option<u32>,
    pub(super) keep_alive: bool,
    pub(super) keep_alive_values: KeepAlive,
    pub(super) urgent_inline: bool,
    pub(super) no_delay: bool,
    pub(super) cork: bool,
    pub(super) max_segment: Option<u16>,
    pub(super) user_timeout: Duration,
    pub(super) syn_count: Option<u8>,
    /// `TCP_LINGER2`: `None` is the default, negative means not at all.
    pub(super) linger2: Option<i32>,
    /// SYN-ACK retransmissions that `TCP_DEFER_ACCEPT` waits for.
    pub(super) defer_accept: u8,
    pub(super) fast_open_connect: bool,
    pub(super) fast_open_no_cookie: bool,
    /// `TCP_FASTOPEN`: length of the queue.
    pub(super) fast_open_queue: u32,
    pub(super) congestion: Option<&'static str>,
    pub(super) not_sent_low: Option<u64>,
    pub(super) tos: u8,
    pub(super) ttl: u8,
    pub(super) mtu_discover: i32,
    pub(super) receive_errors: bool,
    pub(super) v6_only: bool,
    pub(super) window_clamp: u64,
    /// `TCP_INQ`: drivers give `SIOCINQ` with each read.
    pub(super) report_inq: bool,
}

impl Options {
    pub(super) fn new(config: &super::StackConfig) -> Options {
        Options {
            reuse_address: false,
            reuse_port: false,
            send_buffer: None,
            receive_buffer: None,
            receive_low: 1,
            linger: None,
            keep_alive: config.tcp.keep_alive.is_some(),
            keep_alive_values: config.tcp.keep_alive.unwrap_or(config.keep_alive),
            urgent_inline: false,
            no_delay: !config.tcp.nagle,
            cork: false,
            max_segment: None,
            user_timeout: Duration::ZERO,
            syn_count: None,
            linger2: None,
            defer_accept: 0,
            fast_open_connect: false,
            fast_open_no_cookie: false,
            fast_open_queue: 0,
            congestion: None,
            not_sent_low: None,
            tos: 0,
            ttl: config.ttl,
            mtu_discover: 1, // IP_PMTUDISC_WANT
            receive_errors: false,
            v6_only: false,
            window_clamp: 0,
            report_inq: false,
        }
    }
}

/// Retransmissions that fill `seconds` when the timeout starts at one second and doubles (Linux counts a deferral so).
pub(super) fn seconds_to_retransmissions(seconds: u32) -> u8 {
    if seconds == 0 {
        return 0;
    }
    let (mut period, mut timeout, mut count) = (1_u32, 1_u32, 1_u8);
    while seconds > period && count < 255 {
        count += 1;
        timeout = (timeout * 2).min(120);
        period = period.saturating_add(timeout);
    }
    count
}

/// The time that `count` retransmissions fill.
pub(super) fn retransmissions_to_seconds(count: u8) -> u32 {
    let (mut period, mut timeout) = (0_u32, 1_u32);
    for _ in 0..count {
        period = period.saturating_add(timeout);
        timeout = (timeout * 2).min(120);
    }
    period
}

impl Stack {
    /// Sets an option.
    pub fn setsockopt(
        &mut self,
        now: Instant,
        fd: Fd,
        option: SocketOption,
        value: &OptionValue,
    ) -> Result<(), Errno> {
        let index = self.index_of(fd)?;
        let (send_cap, receive_cap) = (self.config.send_memory_cap, self.config.receive_memory_cap);
        let low_cap = self.config.receive_memory.max / 2; // tcp_set_rcvlowat
        let somaxconn = self.config.somaxconn;
        let sock = &mut self.socks[index];
        let state = sock.state();
        let options = &mut sock.options;
        match option {
            SocketOption::Linger => {
                let OptionValue::Linger { on, seconds } = value else {
                    return Err(Errno::EINVAL);
                };
                options.linger = on.then_some((*seconds).max(0) as u32);
                return Ok(());
            }
            SocketOption::Congestion => {
                let OptionValue::Name(name) = value else {
                    return Err(Errno::EINVAL);
                };
                let plugins = self.config.tcp.plugins.controllers;
                let entry = AnyController::entry_among(plugins, name).ok_or(Errno::ENOPROTOOPT)?;
                options.congestion = Some(entry.name);
                return Ok(());
            }
            _ => {}
        }
        let value = value.int()?;
        let on = value != 0;
        let range = |low: i32, high: i32| (low..=high).contains(&value).then_some(()).ok_or(Errno::EINVAL);
        match option {
            SocketOption::ReuseAddress => options.reuse_address = on,
            SocketOption::ReusePort => options.reuse_port = on,
            SocketOption::SendBuffer => {
                let wanted = u64::from(value as u32).min(send_cap); // unsigned, as Linux takes it
                options.send_buffer = Some((2 * wanted).max(4608)); // SOCK_MIN_SNDBUF
            }
            SocketOption::ReceiveBuffer => {
                let wanted = u64::from(value as u32).min(receive_cap);
                options.receive_buffer = Some((2 * wanted).max(2304)); // SOCK_MIN_RCVBUF
            }
            SocketOption::ReceiveLow => {
                let wanted = if value < 0 { i32::MAX } else { value.max(1) };
                options.receive_low = (wanted as u64).min(low_cap);
            }
            SocketOption::KeepAlive => {
                options.keep_alive = on;
                if let Body::Open(connection) = &mut sock.body {
                    connection.set(now, Setting::KeepAlive(on));
                }
            }
            SocketOption::OutOfBandInline => options.urgent_inline = on,
            SocketOption::NoDelay => {
                options.no_delay = on;
                if let Body::Open(connection) = &mut sock.body {
                    connection.set(now, Setting::Nagle(!on));
                }
            }
            SocketOption::Cork => {
                options.cork = on;
                if let Body::Open(connection) = &mut sock.body
                    && !on
                {
                    let _ = connection.write(now, Bytes::ZERO, WriteFlags::default());
                }
            }
            SocketOption::MaxSegment => {
                if value != 0 {
                    range(88, 32_767)?; // TCP_MIN_MSS, MAX_TCP_WINDOW
                }
                options.max_segment = (value != 0).then_some(value as u16);
            }
            SocketOption::UserTimeout => {
                range(0, i32::MAX)?;
                options.user_timeout = Duration::from_millis(value as u64);
            }
            SocketOption::SynCount => {
                range(1, 127)?;
                options.syn_count = Some(value as u8);
            }
            SocketOption::KeepIdle => {
                range(1, 32_767)?;
                options.keep_alive_values.idle = Duration::from_secs(value as u64);
            }
            SocketOption::KeepInterval => {
                range(1, 32_767)?;
                options.keep_alive_values.interval = Duration::from_secs(value as u64);
            }
            SocketOption::KeepCount => {
                range(1, 127)?;
                options.keep_alive_values.probes = value as u8;
            }
            SocketOption::Linger2 => {
                // Above two minutes, and zero, stand for the default (tcp(7)).
                options.linger2 = if value < 0 {
                    Some(-1)
                } else if value > 120 {
                    Some(120)
                } else if value == 0 {
                    None
                } else {
                    Some(value)
                };
            }
            SocketOption::DeferAccept => {
                options.defer_accept = seconds_to_retransmissions(value.max(0) as u32);
            }
            SocketOption::WindowClamp => options.window_clamp = if on { value.max(1152) as u64 } else { 0 },
            SocketOption::FastOpen => {
                if value < 0 || !matches!(state, None | Some(State::Closed)) {
                    return Err(Errno::EINVAL);
                }
                options.fast_open_queue = (value as u32).min(somaxconn);
            }
            SocketOption::FastOpenConnect => {
                range(0, 1)?;
                if !self.config.fast_open.client {
                    return Err(Errno::EOPNOTSUPP);
                }
                if !matches!(sock.body, Body::Idle) {
                    return Err(Errno::EINVAL);
                }
                options.fast_open_connect = on;
            }
            SocketOption::FastOpenNoCookie => {
                range(0, 1)?;
                if !matches!(sock.body, Body::Idle | Body::Listen(_)) {
                    return Err(Errno::EINVAL);
                }
                options.fast_open_no_cookie = on;
            }
            SocketOption::QuickAck => sock.quick_ack = on,
            SocketOption::NotSentLow => options.not_sent_low = Some(u64::from(value as u32)),
            SocketOption::Inq => {
                range(0, 1)?;
                options.report_inq = on;
            }
            SocketOption::Tos | SocketOption::V6TrafficClass => {
                options.tos = value as u8 & !3 | options.tos & 3; // the ECN bits are TCP's
            }
            SocketOption::Ttl | SocketOption::V6HopLimit => {
                if value == -1 {
                    options.ttl = self.config.ttl;
                } else {
                    range(1, 255)?;
                    options.ttl = value as u8;
                }
            }
            SocketOption::MtuDiscover => {
                range(0, 5)?;
                options.mtu_discover = value;
            }
            SocketOption::ReceiveErrors | SocketOption::V6ReceiveErrors => options.receive_errors = on,
            SocketOption::V6Only => options.v6_only = on,
            SocketOption::Error
            | SocketOption::AcceptConnections
            | SocketOption::Linger
            | SocketOption::Congestion => return Err(Errno::ENOPROTOOPT),
        }
        self.after_option(now, index, option);
        Ok(())
    }

    /// Reads an option. `SO_ERROR` is cleared by it.
    pub fn getsockopt(&mut self, now: Instant, fd: Fd, option: SocketOption) -> Result<OptionValue, Errno> {
        let index = self.index_of(fd)?;
        let send_default = self.config.send_memory.default;
        let receive_default = self.config.receive_memory.default;
        let (fin_timeout, syn_retries) = (self.config.fin_timeout, self.config.tcp.syn_retries);
        let congestion = self.config.tcp.congestion_control;
        let sock = &mut self.socks[index];
        let state = sock.state();
        let options = &sock.options;
        let flag = |on: bool| Ok(OptionValue::Int(i32::from(on)));
        let int = |value: u64| Ok(OptionValue::Int(value.min(i32::MAX as u64) as i32));
        let seconds = |span: Duration| int(span.as_millis() / 1000);
        match option {
            SocketOption::Error => {
                let error = sock.error.take().or_else(|| sock.soft_error.take());
                Ok(OptionValue::Int(error.map_or(0, Errno::number)))
            }
            SocketOption::Linger => Ok(OptionValue::Linger {
                on: options.linger.is_some(),
                seconds: options.linger.unwrap_or(0) as i32,
            }),
            SocketOption::Congestion => Ok(OptionValue::Name(
                options.congestion.unwrap_or(congestion).to_string(),
            )),
            SocketOption::ReuseAddress => flag(options.reuse_address),
            SocketOption::ReusePort => flag(options.reuse_port),
            SocketOption::SendBuffer => {
                let tuned = sock.memory.buffer.max(send_default);
                int(options.send_buffer.unwrap_or(tuned))
            }
            SocketOption::ReceiveBuffer => int(options.receive_buffer.unwrap_or(receive_default)),
            SocketOption::ReceiveLow => int(options.receive_low),
            SocketOption::KeepAlive => flag(options.keep_alive),
            SocketOption::OutOfBandInline => flag(options.urgent_inline),
            SocketOption::AcceptConnections => flag(matches!(sock.body, Body::Listen(_))),
            SocketOption::NoDelay => flag(options.no_delay),
            SocketOption::Cork => flag(options.cork),
            SocketOption::MaxSegment => {
                // Before a connection: what was asked for, or RFC 9293's default.
                let known = match &sock.body {
                    Body::Open(connection) if state != Some(State::Closed) => Some(connection.info(now).mss),
                    Body::Open(_) | Body::Idle | Body::Listen(_) => None,
                };
                int(u64::from(
                    known.unwrap_or_else(|| options.max_segment.map_or(536, u32::from)),
                ))
            }
            SocketOption::UserTimeout => int(options.user_timeout.as_millis()),
            SocketOption::SynCount => int(u64::from(options.syn_count.unwrap_or(syn_retries))),
            SocketOption::KeepIdle => seconds(options.keep_alive_values.idle),
            SocketOption::KeepInterval => seconds(options.keep_alive_values.interval),
            SocketOption::KeepCount => int(u64::from(options.keep_alive_values.probes)),
            SocketOption::Linger2 => Ok(OptionValue::Int(match options.linger2 {
                None => (fin_timeout.as_millis() / 1000) as i32,
                Some(value) => value,
            })),
            SocketOption::DeferAccept => int(u64::from(retransmissions_to_seconds(options.defer_accept))),
            SocketOption::WindowClamp => int(options.window_clamp),
            SocketOption::FastOpen => int(u64::from(options.fast_open_queue)),
            SocketOption::FastOpenConnect => flag(options.fast_open_connect),
            SocketOption::FastOpenNoCookie => flag(options.fast_open_no_cookie),
            SocketOption::QuickAck => flag(sock.quick_ack),
            SocketOption::NotSentLow => Ok(OptionValue::Int(options.not_sent_low.unwrap_or(0) as u32 as i32)),
            SocketOption::Inq => flag(options.report_inq),
            SocketOption::Tos | SocketOption::V6TrafficClass => int(u64::from(options.tos)),
            SocketOption::Ttl | SocketOption::V6HopLimit => int(u64::from(options.ttl)),
            SocketOption::MtuDiscover => Ok(OptionValue::Int(options.mtu_discover)),
            SocketOption::ReceiveErrors | SocketOption::V6ReceiveErrors => flag(options.receive_errors),
            SocketOption::V6Only => flag(options.v6_only),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{retransmissions_to_seconds, seconds_to_retransmissions};

    #[test]
    fn deferral_is_counted_in_retransmissions() {
        for (seconds, count, back) in [(0, 0, 0), (1, 1, 1), (3, 2, 3), (4, 3, 7), (30, 5, 31)] {
            assert_eq!(seconds_to_retransmissions(seconds), count, "{seconds} s");
            assert_eq!(retransmissions_to_seconds(count), back, "{count}");
        }
    }
}
