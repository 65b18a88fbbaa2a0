//! What a script says, after parsing and before anything runs.

use std::fmt;

/// A whole script.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// Lines `--name=value` at the top.
    pub options: Vec<ScriptOption>,
    /// The command before the first event.
    pub init: Option<Command>,
    /// What happens, in order.
    pub events: Vec<Event>,
    /// The command after the last event.
    pub cleanup: Option<Command>,
}

impl Script {
    /// The value of the last option of this name.
    pub fn option(&self, name: &str) -> Option<&ScriptOption> {
        self.options.iter().rev().find(|option| option.name == name)
    }
}

/// A line `--name` or `--name=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptOption {
    /// Without the dashes.
    pub name: String,
    /// After the equals sign.
    pub value: Option<String>,
    /// Line in the file, from 1.
    pub line: u32,
}

/// A shell command in back quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Without the quotes.
    pub text: String,
    /// Line in the file, from 1.
    pub line: u32,
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Line in the file, from 1.
    pub line: u32,
    /// What the script says there, white space joined.
    pub text: String,
    /// When.
    pub time: Time,
    /// When a blocking call has to return: same base as `time`.
    pub end: Option<i64>,
    /// What.
    pub action: Action,
}

/// When an event is to happen, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// Since the first event.
    Absolute(i64),
    /// Since the event before.
    Relative(i64),
    /// Whenever.
    Any,
    /// Between two times since the first event.
    AbsoluteRange(i64, i64),
    /// Between two times since the event before.
    RelativeRange(i64, i64),
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A packet goes in or has to come out.
    Packet(PacketLine),
    /// The application calls.
    Call(CallLine),
    /// A shell command.
    Command(String),
    /// Assertions about `TCP_INFO`.
    Code(String),
}

/// Into the stack under test or out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `<`
    Inbound,
    /// `>`
    Outbound,
}

/// A packet line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketLine {
    /// Which way.
    pub direction: Direction,
    /// What is said about the IP header.
    pub ip: IpInfo,
    /// Source and destination port, where the script names them.
    pub ports: Option<(u16, u16)>,
    /// Behind the IP header.
    pub body: Body,
}

/// What is said about the IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpInfo {
    /// The traffic class or its ECN bits.
    pub tos: Tos,
    /// Time to live.
    pub ttl: Option<u8>,
    /// IPv6 flow label.
    pub flow_label: Option<u32>,
}

/// What is said about the traffic class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tos {
    /// Nothing: not looked at; zero inbound.
    #[default]
    Unsaid,
    /// The whole byte.
    Byte(u8),
    /// The ECN bits.
    Ecn(u8),
    /// Either ECT codepoint.
    AnyEct,
}

/// Behind the IP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A TCP segment.
    Tcp(TcpLine),
    /// An ICMP message.
    Icmp(IcmpLine),
    /// A UDP datagram and its bytes of payload.
    Udp(u32),
}

/// A TCP segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpLine {
    /// The nine control bits, as on the wire.
    pub flags: u16,
    /// How the sequence number is meant.
    pub seq_form: SeqForm,
    /// First sequence number.
    pub seq: u32,
    /// Payload bytes.
    pub len: u32,
    /// Acknowledgment number.
    pub ack: Option<u32>,
    /// Window field, raw.
    pub window: Option<u16>,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options.
    pub options: OptionList,
}

/// How a sequence number is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeqForm {
    /// From the initial sequence number.
    Relative,
    /// As on the wire (`!`).
    Absolute,
    /// Not looked at (`...(n)`).
    Unsaid,
}

/// The options of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionList {
    /// `<...>`: not looked at.
    Any,
    /// Exactly these, in this order.
    These(Vec<TcpOption>),
}

/// One TCP option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpOption {
    /// End of list.
    Eol,
    /// Padding.
    Nop,
    /// Maximum segment size.
    Mss(u16),
    /// Window scale.
    WindowScale(u8),
    /// SACK permitted.
    SackPermitted,
    /// SACK blocks, left and right edges.
    Sack(Vec<(u32, u32)>),
    /// Timestamps.
    Timestamps {
        /// The sender's clock.
        val: u32,
        /// What it echoes.
        ecr: u32,
    },
    /// Fast Open cookie, perhaps empty.
    FastOpen(Vec<u8>),
    /// Fast Open as an experimental option (254, magic f989).
    FastOpenExperimental(Vec<u8>),
    /// MD5 signature.
    Md5(Vec<u8>),
    /// Accurate ECN counters, in the order said.
    AccEcn(Vec<(AccEcnField, u32)>),
    /// Any other: kind and contents.
    Other(u8, Vec<u8>),
}

/// A counter of the accurate-ECN option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccEcnField {
    /// ECT(0) bytes.
    Ect0,
    /// CE bytes.
    Ce,
    /// ECT(1) bytes.
    Ect1,
}

/// An ICMP message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IcmpLine {
    /// Type.
    pub kind: IcmpKind,
    /// Code.
    pub code: u8,
    /// Next-hop MTU.
    pub mtu: Option<u32>,
    /// What is quoted.
    pub quoted: Quoted,
}

/// Type of an ICMP message: a name means another number in each IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpKind {
    /// By number.
    Number(u8),
    /// A named one: its IPv4 and its IPv6 number; `None`: it does not exist there.
    Named(Option<u8>, Option<u8>),
}

/// What an ICMP message quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quoted {
    /// The connection's addresses, no sequence number.
    Unsaid,
    /// A TCP segment of the connection.
    Tcp {
        /// First sequence number, relative.
        seq: u32,
        /// Payload bytes.
        len: u32,
    },
    /// A UDP datagram and its bytes.
    Udp(u32),
}

/// A system call line.
#[derive(Clone, Debug, PartialEq)]
pub struct CallLine {
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// What it has to return; `None`: whatever.
    pub result: Option<i64>,
    /// Name of the error it has to fail with.
    pub errno: Option<String>,
}

/// An argument of a call, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// `...`
    Any,
    /// A number.
    Number(i64),
    /// A constant, or several joined by `|`.
    Words(Vec<String>),
    /// Text in double quotes.
    Text(String),
    /// `[a, b]`
    List(Vec<Argument>),
    /// `{name=value, ...}`; a member without a name has an empty one.
    Struct(Vec<(String, Argument)>),
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Argument::Any => f.write_str("..."),
            Argument::Number(number) => write!(f, "{number}"),
            Argument::Words(words) => f.write_str(&words.join("|")),
            Argument::Text(text) => write!(f, "{text:?}"),
            Argument::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{item}")?;
                }
                f.write_str("]")
            }
            Argument::Struct(members) => {
                f.write_str("{")?;
                for (index, (name, value)) in members.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    if !name.is_empty() {
                        write!(f, "{name}=")?;
                    }
                    write!(f, "{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}
