//! From a system call line to a [`Call`] and what it has to leave in its arguments.

use super::ast::{Argument, CallLine};
use super::backend::{Call, Destination, Handle, OptionValue, Output};
use super::constant;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Sockets by the numbers the script gives them.
#[derive(Clone, Debug, Default)]
pub(super) struct Descriptors(BTreeMap<i64, Handle>);

impl Descriptors {
    pub(super) fn bind(&mut self, number: i64, handle: Handle) {
        self.0.insert(number, handle);
    }

    pub(super) fn release(&mut self, handle: Handle) {
        self.0.retain(|_, known| *known != handle);
    }
}

/// Addresses that `...` stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
}

/// A call ready to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prepared {
    pub(super) call: Call,
    /// What it has to leave in its arguments; `None`: not looked at.
    pub(super) output: Option<Output>,
}

/// Prepares a call.
///
/// # Errors
/// What about it is not supported.
pub(super) fn prepare(
    line: &CallLine,
    descriptors: &Descriptors,
    addresses: Addresses,
) -> Result<Prepared, String> {
    Preparation {
        line,
        descriptors,
        addresses,
    }
    .prepare()
}

struct Preparation<'a> {
    line: &'a CallLine,
    descriptors: &'a Descriptors,
    addresses: Addresses,
}

impl Preparation<'_> {
    fn prepare(&self) -> Result<Prepared, String> {
        let mut output = None;
        let call = match self.line.name.as_str() {
            "socket" => Call::Socket {
                kind: self.int(1)?,
                protocol: self.int(2)?,
            },
            "bind" => Call::Bind {
                socket: self.handle(0)?,
                address: self.address(1, self.addresses.local)?,
            },
            "listen" => Call::Listen {
                socket: self.handle(0)?,
                backlog: self.int(1)?,
            },
            "accept" => Call::Accept {
                socket: self.handle(0)?,
                flags: 0,
            },
            "accept4" => Call::Accept {
                socket: self.handle(0)?,
                flags: self.int(3)?,
            },
            "connect" => Call::Connect {
                socket: self.handle(0)?,
                address: self.destination(1)?,
            },
            "read" => self.reading(vec![self.size(2)?], 0)?,
            "recv" | "recvfrom" => self.reading(vec![self.size(2)?], self.int(3)?)?,
            "readv" => self.reading(self.buffers(self.argument(1)?)?, 0)?,
            "recvmsg" => {
                output = self.queued_error()?;
                self.reading(self.message()?.0, self.int(2)?)?
            }
            "write" => self.writing(vec![self.size(2)?], 0, None)?,
            "send" => self.writing(vec![self.size(2)?], self.int(3)?, None)?,
            "writev" => self.writing(self.buffers(self.argument(1)?)?, 0, None)?,
            "sendto" => {
                let to = self.destination(4)?;
                self.writing(vec![self.size(2)?], self.int(3)?, Some(to))?
            }
            "sendmsg" => {
                let (buffers, named) = self.message()?;
                let to = named.then_some(Destination::Address(self.addresses.remote));
                self.writing(buffers, self.int(2)?, to)?
            }
            "shutdown" => Call::Shutdown {
                socket: self.handle(0)?,
                how: self.int(1)?,
            },
            "close" => Call::Close {
                socket: self.handle(0)?,
            },
            "fcntl" => Call::Fcntl {
                socket: self.handle(0)?,
                command: self.int(1)?,
                argument: if self.line.arguments.len() > 2 {
                    self.int(2)?
                } else {
                    0
                },
            },
            "ioctl" => {
                if let Ok(Argument::List(items)) = self.argument(2)
                    && let [value] = items.as_slice()
                {
                    let value = self.number(value)?;
                    output = Some(Output::Option(OptionValue::Integer(narrow(value)?)));
                }
                Call::Ioctl {
                    socket: self.handle(0)?,
                    request: self.int(1)? as u32,
                }
            }
            "getsockopt" => {
                output = self.option_value(3)?.map(Output::Option);
                Call::GetOption {
                    socket: self.handle(0)?,
                    level: self.int(1)?,
                    name: self.int(2)?,
                }
            }
            "setsockopt" => Call::SetOption {
                socket: self.handle(0)?,
                level: self.int(1)?,
                name: self.int(2)?,
                value: self.option_value(3)?.ok_or_else(|| self.refuse(3))?,
            },
            "poll" => {
                let entries = self.poll_entries()?;
                output = Some(Output::Events(
                    entries.iter().map(|entry| entry.expected).collect(),
                ));
                Call::Poll {
                    entries: entries.iter().map(|entry| (entry.socket, entry.asked)).collect(),
                    timeout_ms: self.int(2)?,
                }
            }
            "epoll_create" | "epoll_create1" => Call::EpollCreate,
            "epoll_ctl" => {
                let (handle, events) = self.epoll_event(3)?;
                Call::EpollControl {
                    epoll: self.handle(0)?,
                    operation: self.int(1)?,
                    socket: handle.map_or_else(|| self.handle(2), Ok)?,
                    events,
                }
            }
            "epoll_wait" => {
                if let (Some(handle), events) = self.epoll_event(1)? {
                    output = Some(Output::Ready(vec![(handle, events)]));
                }
                Call::EpollWait {
                    epoll: self.handle(0)?,
                    most: self.int(2)?,
                    timeout_ms: self.int(3)?,
                }
            }
            name => return Err(format!("the system call `{name}`")),
        };
        Ok(Prepared { call, output })
    }

    fn argument(&self, index: usize) -> Result<&Argument, String> {
        self.line
            .arguments
            .get(index)
            .ok_or_else(|| format!("`{}` without argument {}", self.line.name, index + 1))
    }

    fn refuse(&self, index: usize) -> String {
        match self.argument(index) {
            Ok(argument) => format!("`{argument}` as argument {} of `{}`", index + 1, self.line.name),
            Err(error) => error,
        }
    }

    fn number(&self, argument: &Argument) -> Result<i64, String> {
        match argument {
            Argument::Number(number) => Ok(*number),
            Argument::Words(words) => words.iter().try_fold(0, |sum, word| {
                let digits = word.strip_prefix("0x");
                let number = match digits {
                    Some(digits) => i64::from_str_radix(digits, 16).ok(),
                    None => word.parse().ok(),
                };
                number
                    .or_else(|| constant::value(word))
                    .map(|value| sum | value)
                    .ok_or_else(|| format!("the constant `{word}` in `{}`", self.line.name))
            }),
            other => Err(format!("`{other}` as a number in `{}`", self.line.name)),
        }
    }

    fn int(&self, index: usize) -> Result<i32, String> {
        let value = self.number(self.argument(index)?)?;
        // Flags such as EPOLLET fill the sign bit.
        narrow(value).or_else(|error| u32::try_from(value).map(|value| value as i32).map_err(|_| error))
    }

    fn size(&self, index: usize) -> Result<usize, String> {
        let value = self.number(self.argument(index)?)?;
        match usize::try_from(value) {
            Ok(size) if size <= 1 << 30 => Ok(size),
            _ => Err(self.refuse(index)),
        }
    }

    fn handle(&self, index: usize) -> Result<Handle, String> {
        self.handle_of(self.number(self.argument(index)?)?)
    }

    fn handle_of(&self, number: i64) -> Result<Handle, String> {
        // A number that was never given out, or was closed: the stack is to refuse it.
        Ok(self.descriptors.0.get(&number).copied().unwrap_or(Handle(-1)))
    }

    fn address(&self, index: usize, default: SocketAddr) -> Result<SocketAddr, String> {
        match self.argument(index)? {
            Argument::Any => Ok(default),
            Argument::Struct(members) => {
                let mut address = default;
                for (name, value) in members {
                    match (name.as_str(), value) {
                        ("sin_port" | "sin6_port", value) => {
                            address.set_port(
                                u16::try_from(self.number(value)?).map_err(|_| self.refuse(index))?,
                            );
                        }
                        ("sin_addr" | "sin6_addr", Argument::Text(text)) => {
                            address.set_ip(text.parse().map_err(|_| self.refuse(index))?);
                        }
                        _ => {}
                    }
                }
                Ok(address)
            }
            _ => Err(self.refuse(index)),
        }
    }

    fn destination(&self, index: usize) -> Result<Destination, String> {
        match self.argument(index)? {
            Argument::Words(words) if words.as_slice() == ["AF_UNSPEC"] => Ok(Destination::Unspecified),
            Argument::Struct(members)
                if members.iter().any(|(name, value)| {
                    name == "sa_family" && *value == Argument::Words(vec!["AF_UNSPEC".to_owned()])
                }) =>
            {
                Ok(Destination::Unspecified)
            }
            _ => Ok(Destination::Address(self.address(index, self.addresses.remote)?)),
        }
    }

    fn reading(&self, buffers: Vec<usize>, flags: i32) -> Result<Call, String> {
        Ok(Call::Read {
            socket: self.handle(0)?,
            buffers,
            flags,
        })
    }

    fn writing(&self, buffers: Vec<usize>, flags: i32, to: Option<Destination>) -> Result<Call, String> {
        Ok(Call::Write {
            socket: self.handle(0)?,
            buffers,
            flags,
            to,
        })
    }

    /// Lengths of `[{..., 1000}, {iov_base=..., iov_len=10}]`.
    fn buffers(&self, argument: &Argument) -> Result<Vec<usize>, String> {
        let Argument::List(items) = argument else {
            return Err(format!(
                "`{argument}` as a list of buffers in `{}`",
                self.line.name
            ));
        };
        items
            .iter()
            .map(|item| {
                let Argument::Struct(members) = item else {
                    return Err(format!("`{item}` as a buffer in `{}`", self.line.name));
                };
                let len = members
                    .iter()
                    .find(|member| member.0 == "iov_len")
                    .or_else(|| members.get(1).filter(|member| member.0.is_empty()));
                let len = len.ok_or_else(|| format!("`{item}` as a buffer in `{}`", self.line.name))?;
                usize::try_from(self.number(&len.1)?).map_err(|_| format!("a buffer of `{item}`"))
            })
            .collect()
    }

    /// Buffers of a message header, and whether it names a peer.
    fn message(&self) -> Result<(Vec<usize>, bool), String> {
        let Argument::Struct(members) = self.argument(1)? else {
            return Err(self.refuse(1));
        };
        if self.queued_error()?.is_none() && members.iter().any(|member| member.0 == "msg_control") {
            return Err(format!("`msg_control` in `{}`", self.line.name));
        }
        let buffers = members.iter().find(|member| member.0 == "msg_iov");
        let buffers = buffers.map_or(Ok(Vec::new()), |member| self.buffers(&member.1))?;
        Ok((buffers, members.iter().any(|member| member.0 == "msg_name")))
    }

    /// The error that `msg_control` holds, if it holds one.
    fn queued_error(&self) -> Result<Option<Output>, String> {
        let member = |members: &'_ [(String, Argument)], name: &str| {
            let found = members.iter().find(|member| member.0 == name);
            found.map(|member| member.1.clone())
        };
        let Argument::Struct(members) = self.argument(1)? else {
            return Ok(None);
        };
        let Some(Argument::List(messages)) = member(members, "msg_control") else {
            return Ok(None);
        };
        let [Argument::Struct(message)] = messages.as_slice() else {
            return Ok(None);
        };
        let kind = member(message, "cmsg_type")
            .map(|kind| self.number(&kind))
            .transpose()?;
        if kind != constant::value("IP_RECVERR") && kind != constant::value("IPV6_RECVERR") {
            return Ok(None);
        }
        let Some(Argument::Struct(error)) = member(message, "cmsg_data") else {
            return Ok(None);
        };
        let number = |name: &str| match member(&error, name) {
            Some(Argument::Words(words)) if words.len() == 1 && constant::errno(&words[0]).is_some() => {
                Ok(i64::from(constant::errno(&words[0]).unwrap_or(0)))
            }
            Some(value) => self.number(&value),
            None => Ok(0),
        };
        let byte = |name: &str| {
            let value = number(name)?;
            u8::try_from(value).map_err(|_| format!("the number {value}"))
        };
        let word = |name: &str| {
            let value = number(name)?;
            u32::try_from(value).map_err(|_| format!("the number {value}"))
        };
        Ok(Some(Output::QueuedError {
            errno: narrow(number("ee_errno")?)?,
            origin: byte("ee_origin")?,
            kind: byte("ee_type")?,
            code: byte("ee_code")?,
            info: word("ee_info")?,
            data: word("ee_data")?,
        }))
    }

    /// `None` for `...`.
    fn option_value(&self, index: usize) -> Result<Option<OptionValue>, String> {
        match self.argument(index)? {
            Argument::Any => Ok(None),
            Argument::Text(text) => Ok(Some(OptionValue::Text(text.clone()))),
            Argument::List(items) => match items.as_slice() {
                [Argument::Any] => Ok(None),
                [Argument::Text(text)] => Ok(Some(OptionValue::Text(text.clone()))),
                [value @ (Argument::Number(_) | Argument::Words(_))] => {
                    Ok(Some(OptionValue::Integer(narrow(self.number(value)?)?)))
                }
                _ => Err(self.refuse(index)),
            },
            Argument::Struct(members) => {
                let member = |wanted: &str| {
                    let found = members.iter().find(|member| member.0.ends_with(wanted));
                    found
                        .map(|member| self.number(&member.1).and_then(narrow))
                        .transpose()
                };
                match (member("onoff")?, member("linger")?) {
                    (Some(on), Some(seconds)) => Ok(Some(OptionValue::Linger { on, seconds })),
                    _ => Err(self.refuse(index)),
                }
            }
            Argument::Number(_) | Argument::Words(_) => Err(self.refuse(index)),
        }
    }

    fn poll_entries(&self) -> Result<Vec<PollEntry>, String> {
        let Argument::List(items) = self.argument(0)? else {
            return Err(self.refuse(0));
        };
        let mut entries = Vec::new();
        for item in items {
            let Argument::Struct(members) = item else {
                return Err(self.refuse(0));
            };
            let member = |name: &str| match members.iter().find(|member| member.0 == name) {
                Some((_, value)) => self.number(value),
                None => Ok(0),
            };
            entries.push(PollEntry {
                socket: self.handle_of(member("fd")?)?,
                asked: member("events")? as i16,
                expected: member("revents")? as i16,
            });
        }
        Ok(entries)
    }

    /// `{events=EPOLLIN, fd=4}`.
    fn epoll_event(&self, index: usize) -> Result<(Option<Handle>, u32), String> {
        match self.argument(index)? {
            Argument::Struct(members) => {
                let member = |name: &str| members.iter().find(|member| member.0 == name);
                let events = member("events").map_or(Ok(0), |member| self.number(&member.1))?;
                let handle = match member("fd") {
                    Some((_, value)) => Some(self.handle_of(self.number(value)?)?),
                    None => None,
                };
                Ok((handle, events as u32))
            }
            Argument::Any => Ok((None, 0)),
            _ => Err(self.refuse(index)),
        }
    }
}

/// An entry of `poll`'s array.
struct PollEntry {
    socket: Handle,
    asked: i16,
    expected: i16,
}

fn narrow(value: i64) -> Result<i32, String> {
    i32::try_from(value).map_err(|_| format!("the number {value}"))
}
