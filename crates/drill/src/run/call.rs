//! System calls of a script: made, awaited, compared.

use super::{PORT, Pending, Run, Stop, broken, seconds, unsupported};
use crate::ast::{CallLine, Event};
use crate::backend::{Call, Destination, Done, Handle, OptionValue, Output};
use crate::call::{self, Addresses, Prepared};
use crate::constant;
use crate::track::Track;
use std::net::{IpAddr, SocketAddr};

impl<'s> Run<'s> {
    pub(super) fn call(&mut self, event: &'s Event, line: &'s CallLine, base: i64) -> Result<(), Stop> {
        self.await_pending()?;
        let address = |ip: IpAddr| match ip {
            IpAddr::V4(ip) if self.setup.mapped => IpAddr::V6(ip.to_ipv6_mapped()),
            ip => ip,
        };
        let addresses = Addresses {
            local: SocketAddr::new(address(self.setup.local), PORT),
            remote: SocketAddr::new(address(self.setup.remote), PORT),
        };
        let Prepared { call, output } = call::prepare(line, &self.descriptors, addresses)
            .map_err(|what| unsupported(event.line, what))?;
        if self.rules.neutral.is_some() && is_receive_buffer(&call) {
            return Ok(());
        }
        self.about_to(&call);
        let begun = self.since(self.now());
        let done = self
            .backend
            .call(&call)
            .map_err(|trouble| broken(event.line, trouble))?;
        // The end of a blocking call counts from where its begin does.
        let due = match (event.end, event.time) {
            (Some(end), crate::ast::Time::Relative(_)) => Some(base + end),
            (end, _) => end,
        };
        let pending = Pending {
            event,
            line,
            call,
            output,
            due: due.unwrap_or(begun),
            span: due.map_or(0, |due| due - begun),
        };
        match (done, due) {
            (Some(done), _) => self.returned(&pending, &done),
            (None, Some(_)) => {
                self.pending = Some(pending);
                Ok(())
            }
            (None, None) => Err(self.fail(
                event,
                format!("`{}` blocks; the script says that it returns at once", line.name),
                String::new(),
            )),
        }
    }

    /// What a call means for the connection under test.
    fn about_to(&mut self, call: &Call) {
        let opens = match call {
            Call::Connect { address, .. } => matches!(address, Destination::Address(_)),
            Call::Write { to, flags, .. } => {
                to.is_some() && i64::from(*flags) & constant::value("MSG_FASTOPEN").unwrap_or(0) != 0
            }
            Call::Close { socket } => {
                if self.opened == Some(*socket) {
                    self.opened = None; // its number may come again
                }
                false
            }
            Call::Listen { .. } => {
                self.track = None; // the next packet from the peer begins a connection
                false
            }
            _ => false,
        };
        // A second call on the socket is about the same connection; packets of other sockets are not looked at any more.
        if let Call::Connect { socket, .. } | Call::Write { socket, .. } = call
            && opens
        {
            let active = self.track.as_ref().is_some_and(Track::is_active);
            if !active || self.opened != Some(*socket) {
                self.track = Some(Track::active(PORT));
                self.opened_at = self.now();
                self.opened = Some(*socket);
            }
            self.under_test = Some(*socket);
        }
    }

    /// Looks whether the blocking call has returned.
    pub(super) fn settle(&mut self) -> Result<(), Stop> {
        let Some(pending) = &self.pending else {
            return Ok(());
        };
        let line = pending.event.line;
        let Some(done) = self.backend.pending().map_err(|trouble| broken(line, trouble))? else {
            return Ok(());
        };
        match self.pending.take() {
            Some(pending) => self.returned(&pending, &done),
            None => Ok(()),
        }
    }

    /// Waits until the blocking call, if there is one, has returned.
    pub(super) fn await_pending(&mut self) -> Result<(), Stop> {
        self.settle()?;
        let Some(pending) = &self.pending else {
            return Ok(());
        };
        let (line, until) = (pending.event.line, pending.due + self.tolerance(pending.span));
        let until = self.instant(until);
        if until > self.now() {
            self.backend
                .wait(until)
                .map_err(|trouble| broken(line, trouble))?;
        }
        self.settle()?;
        match &self.pending {
            None => Ok(()),
            Some(pending) => Err(self.fail(
                pending.event,
                format!(
                    "`{}` has not returned at {}; expected at {}",
                    pending.line.name,
                    seconds(self.since(self.now())),
                    seconds(pending.due)
                ),
                String::new(),
            )),
        }
    }

    /// Compares what a call gave with its line.
    fn returned(&mut self, pending: &Pending<'s>, done: &Done) -> Result<(), Stop> {
        let (event, line) = (pending.event, pending.line);
        let show = |result: i64, errno: Option<String>| match errno {
            Some(errno) => format!("{result} {errno}"),
            None => result.to_string(),
        };
        let errno = (done.result < 0).then(|| constant::errno_name(done.errno));
        let seen = show(done.result, errno);
        let gives_socket = matches!(
            pending.call,
            Call::Socket { .. } | Call::Accept { .. } | Call::EpollCreate
        );
        if let Some(wanted) = line.result {
            let right = if wanted >= 0 && gives_socket {
                done.result >= 0
            } else {
                wanted == done.result
            };
            let wanted_errno = match &line.errno {
                Some(name) => Some(
                    constant::errno(name)
                        .ok_or_else(|| unsupported(event.line, format!("the error `{name}`")))?,
                ),
                None => None,
            };
            if !right || wanted_errno.is_some_and(|errno| errno != done.errno) {
                let expected = show(wanted, line.errno.clone());
                return Err(self.fail(
                    event,
                    format!("`{}` returned {seen}; expected {expected}", line.name),
                    format!("  expected: {}\n  seen:     = {seen}\n", event.text),
                ));
            }
        }
        self.compare_output(pending, done)?;
        let off = self.since(done.at) - pending.due;
        if off.abs() > self.tolerance(pending.span) {
            return Err(self.fail(
                event,
                format!(
                    "`{}` returned at {}; expected at {}",
                    line.name,
                    seconds(self.since(done.at)),
                    seconds(pending.due)
                ),
                String::new(),
            ));
        }
        if done.result < 0 {
            return Ok(());
        }
        match &pending.call {
            Call::Close { socket } => {
                self.descriptors.release(*socket);
                if self.under_test == Some(*socket) {
                    self.under_test = None;
                }
            }
            _ if gives_socket => {
                let handle = Handle(done.result as i32);
                self.descriptors.bind(line.result.unwrap_or(done.result), handle);
                if !matches!(pending.call, Call::EpollCreate) {
                    self.under_test = Some(handle);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn compare_output(&self, pending: &Pending<'s>, done: &Done) -> Result<(), Stop> {
        let differs = |expected: String, seen: String| {
            self.fail(
                pending.event,
                format!("`{}` gave {seen}; expected {expected}", pending.line.name),
                format!("  expected: {}\n  seen:     {seen}\n", pending.event.text),
            )
        };
        if let Output::Data { zeros: false } = done.output {
            return Err(differs(
                "zeros".to_owned(),
                "other bytes than were sent".to_owned(),
            ));
        }
        if done.result < 0 {
            return Ok(());
        }
        match (&pending.output, &done.output) {
            (Some(Output::Ready(expected)), Output::Ready(seen)) if done.result == 0 && seen.is_empty() => {
                // Nothing is ready: what the array held before is nobody's business.
                let _ = expected;
                Ok(())
            }
            (Some(expected), seen) if expected != seen => {
                Err(differs(show_output(expected), show_output(seen)))
            }
            _ => Ok(()),
        }
    }
}

fn show_output(output: &Output) -> String {
    match output {
        Output::None => "nothing".to_owned(),
        Output::Option(OptionValue::Integer(value)) => format!("[{value}]"),
        Output::Option(OptionValue::Linger { on, seconds }) => format!("{{onoff={on}, linger={seconds}}}"),
        Output::Option(OptionValue::Text(text)) => format!("{text:?}"),
        Output::Events(events) => {
            let events: Vec<_> = events.iter().map(|events| format!("{events:#x}")).collect();
            format!("revents {}", events.join(" "))
        }
        Output::Ready(ready) => {
            let ready: Vec<_> = ready
                .iter()
                .map(|(handle, events)| format!("{events:#x} on {}", handle.0))
                .collect();
            format!("events {}", ready.join(", "))
        }
        Output::QueuedError {
            errno,
            origin,
            kind,
            code,
            info,
            data,
        } => format!(
            "a queued error: {} from {origin}, type {kind}, code {code}, info {info}, data {data}",
            constant::errno_name(*errno)
        ),
        Output::Data { zeros } => format!("data, zeros: {zeros}"),
    }
}

fn is_receive_buffer(call: &Call) -> bool {
    match call {
        Call::GetOption { level, name, .. } => {
            constant::value("SOL_SOCKET") == Some(i64::from(*level))
                && constant::value("SO_RCVBUF") == Some(i64::from(*name))
        }
        _ => false,
    }
}
