//! What a script says beside packets and calls: its options, what the machine has to be, commands and code.

use super::{Run, Stop, Verdict, broken, unsupported};
use crate::ast::Event;
use crate::backend::{Info, Setting};
use crate::command::{self, Request};
use crate::expression::Refusal;
use std::collections::BTreeMap;

impl Run<'_> {
    pub(super) fn options(&mut self) -> Result<(), Stop> {
        for option in &self.script.options {
            let number = || {
                option
                    .value
                    .as_deref()
                    .and_then(|value| value.parse::<u64>().ok())
            };
            let known = match option.name.as_str() {
                "tolerance_usecs" => number().is_some_and(|usecs| {
                    self.tolerance = (usecs.min(1_000_000_000) * 1000) as i64;
                    true
                }),
                "tolerance_percent" => {
                    let percent = option
                        .value
                        .as_deref()
                        .and_then(|value| value.parse::<f64>().ok());
                    percent.is_some_and(|percent| {
                        self.tolerance_share = percent / 100.0;
                        percent.is_finite() && percent >= 0.0
                    })
                }
                "tcp_ts_tick_usecs" => number().is_some_and(|usecs| {
                    self.timestamp_tick = usecs * 1000;
                    true
                }),
                "tcp_ts_ecr_scaled" => {
                    self.timestamp_scaled = true;
                    true
                }
                "strict_segments" => {
                    self.strict_segments = true;
                    true
                }
                // Read where the stack is made, or of no consequence here: they concern the C program's host.
                "ip_version" | "local_ip" | "remote_ip" | "gateway_ip" | "netmask_ip" | "mtu" | "mss"
                | "speed" | "init_scripts" | "so_filename" | "bind_port" | "connect_port" | "wire_client"
                | "verbose" | "non_fatal" => true,
                _ => false,
            };
            if !known {
                let value = option
                    .value
                    .as_deref()
                    .map_or(String::new(), |value| format!("={value}"));
                return Err(Stop {
                    verdict: Verdict::Unsupported,
                    line: option.line,
                    reason: format!("the option `--{}{value}`", option.name),
                    detail: String::new(),
                });
            }
        }
        self.tolerance = self.tolerance.max(self.rules.granted as i64);
        if self.rules.kernel {
            self.tolerance = self.tolerance.max(KERNEL_TOLERANCE);
        }
        if let Some(tolerance) = self.rules.tolerance {
            self.tolerance = tolerance as i64;
            self.tolerance_share = 0.0;
        }
        Ok(())
    }

    /// Makes the machine what the script expects.
    pub(super) fn machine(&mut self) -> Result<(), Stop> {
        if self
            .rules
            .neutral
            .is_some_and(|neutral| neutral.delayed_from_start)
        {
            self.configure(0, &Setting::QuickAcks(false))?;
        }
        if self.rules.neutral.is_some() {
            // In BSD a reset does not end TIME-WAIT (RFC 1337).
            self.set_sysctl(0, "net.ipv4.tcp_rfc1337", "1")?;
        }
        if self.rules.old_linux {
            for (name, value) in command::OLD_LINUX {
                // A kernel of today does not know what RACK replaced.
                if !(self.rules.kernel
                    && matches!(name, "net.ipv4.tcp_recovery" | "net.ipv4.tcp_early_retrans"))
                {
                    self.set_sysctl(0, name, value)?;
                }
            }
            let segments = command::OLD_FIRST_WINDOW;
            self.configure(0, &Setting::FirstWindow { segments })?;
        }
        let Some(init) = &self.script.init else {
            return Ok(());
        };
        self.command(init.line, &init.text)?;
        let (name, value) = command::KERNEL_TESTS;
        if self.rules.kernel_tests && !init.text.contains(name) {
            self.set_sysctl(init.line, name, value)?;
        }
        Ok(())
    }

    fn set_sysctl(&mut self, line: u32, name: &str, value: &str) -> Result<(), Stop> {
        self.configure(
            line,
            &Setting::Sysctl {
                name: name.to_owned(),
                value: value.to_owned(),
            },
        )
    }

    fn configure(&mut self, line: u32, setting: &Setting) -> Result<(), Stop> {
        self.backend
            .configure(setting)
            .map_err(|trouble| broken(line, trouble))
    }

    pub(super) fn command(&mut self, line: u32, text: &str) -> Result<(), Stop> {
        let requests = command::interpret(text).map_err(|what| unsupported(line, what))?;
        for request in requests {
            match request {
                Request::Nothing => {}
                Request::ForgetCounters => {
                    self.counters = self.counters_now(line)?;
                }
                Request::Grown(name) => {
                    let Some(seen) = self.counters_now(line)?.remove(&name) else {
                        return Err(unsupported(line, format!("the counter {name}")));
                    };
                    if seen <= self.counters.get(&name).copied().unwrap_or(0) {
                        return Err(Stop {
                            verdict: Verdict::Fail,
                            line,
                            reason: format!("the counter {name} has not grown; it is {seen}"),
                            detail: String::new(),
                        });
                    }
                }
                Request::Set(Setting::Sysctl { name, .. })
                    if self.rules.neutral.is_some()
                        && (name.starts_with("net.inet.") || name.starts_with("kern.")) => {}
                Request::Set(setting) => self.configure(line, &setting)?,
                Request::Count(..) if self.rules.kernel => {}
                Request::Count(state, wanted) => {
                    let seen = self
                        .backend
                        .count_state(state)
                        .map_err(|trouble| broken(line, trouble))?;
                    if seen != wanted {
                        return Err(Stop {
                            verdict: Verdict::Fail,
                            line,
                            reason: format!("expected {wanted} connections in {state:?}, found {seen}"),
                            detail: String::new(),
                        });
                    }
                }
            }
        }
        Ok(())
    }

    fn counters_now(&mut self, line: u32) -> Result<BTreeMap<String, u64>, Stop> {
        self.backend.counters().map_err(|trouble| broken(line, trouble))
    }

    pub(super) fn code(&mut self, event: &Event, text: &str) -> Result<(), Stop> {
        let info = match self.under_test {
            Some(socket) => self
                .backend
                .info(socket)
                .map_err(|trouble| broken(event.line, trouble))?,
            None => Info::default(),
        };
        match self.evaluator.run(text, &info) {
            Ok(printed) => {
                self.printed.extend(printed);
                Ok(())
            }
            Err(Refusal::Assertion(reason)) => Err(self.fail(event, reason, String::new())),
            Err(Refusal::Unsupported(what)) => Err(unsupported(event.line, what)),
        }
    }
}

/// What Linux' own tests grant its TCP on a slow machine, nanoseconds.
const KERNEL_TOLERANCE: i64 = 14_000_000;
