//! Parameters of congestion controls as the kernel's modules take them (`/sys/module/tcp_*/parameters`), of which some can only be given when
//! the module is loaded.

use super::super::super::shown;
use fleetfoot_core::parameter::{Value, Values};

/// What differs from the defaults, which are those of Linux.
#[derive(Default)]
pub(super) struct Parameters {
    module: String,
    /// Names and values that are written to files.
    files: Vec<(&'static str, String)>,
    /// Those that are given to the module as it is loaded.
    at_load: Vec<String>,
    /// What is to be said of them.
    said: Vec<String>,
    /// What no module takes.
    beyond: Vec<String>,
}

impl Parameters {
    pub(super) fn of(name: &str, values: Option<&Values>) -> Parameters {
        let mut found = Parameters {
            module: format!("tcp_{name}"),
            ..Parameters::default()
        };
        let table = values.map_or(&[][..], Values::table);
        for (parameter, values) in table.iter().zip(std::iter::repeat(values).flatten()) {
            let value = values.value(parameter.name);
            if value != parameter.default {
                found.add(name, parameter.name, value);
            }
        }
        found
    }

    fn add(&mut self, name: &str, parameter: &'static str, value: Value) {
        let scaled = |number: f64| format!("{:.0}", number * 1024.0);
        let plain = match value {
            Value::Integer(number) => number.to_string(),
            Value::Flag(flag) => u8::from(flag).to_string(),
            _ => String::new(),
        };
        match (name, parameter, value) {
            ("cubic", "beta", Value::Number(beta)) => {
                self.files.push(("beta", scaled(beta)));
                self.said.push(format!(
                    "what tcp_friendliness makes of beta is computed when tcp_cubic is loaded: exact is tcp_cubic.beta={} among the kernel's parameters",
                    scaled(beta)
                ));
            }
            ("cubic", "c", Value::Number(steep)) => self.said.push(format!(
                "c can only be given when tcp_cubic is loaded, with tcp_cubic.bic_scale={:.0} among the kernel's parameters",
                steep * 102.4
            )),
            ("cubic", "fast_convergence" | "tcp_friendliness", _)
            | ("vegas", "alpha" | "beta" | "gamma", _)
            | ("cdg", "backoff_factor", _) => self.files.push((parameter, plain)),
            ("dctcp", "gain", Value::Number(gain)) => {
                let shift = (-libm::log2(gain)).round().clamp(0.0, 10.0);
                self.files.push(("dctcp_shift_g", format!("{shift:.0}")));
                let taken = libm::exp2(-shift);
                if (taken - gain).abs() > 1e-9 {
                    self.said.push(format!("gain is {taken} in Linux, not {gain}"));
                }
            }
            ("dctcp", "initial_alpha", Value::Number(alpha)) => {
                self.files.push(("dctcp_alpha_on_init", scaled(alpha)));
            }
            ("cdg", "window", _) => {
                self.at_load.push(format!("window={plain}"));
                self.said.push(String::from(
                    "window is read when tcp_cdg is loaded: where it is already, modprobe -r tcp_cdg comes first",
                ));
            }
            ("cdg", "beta_delay", Value::Number(beta)) => self.files.push(("backoff_beta", scaled(beta))),
            ("cdg", "ineffective", _) => self.files.push(("use_ineff", plain)),
            ("cdg", "shadow", _) => self.files.push(("use_shadow", plain)),
            ("cdg", "tolerance", _) => self.files.push(("use_tolerance", plain)),
            ("cdg", "hystart", Value::Choice(how)) if how != "hystart++" => {
                let bits = ["off", "train", "delay", "both"].iter().position(|own| *own == how);
                self.files.push(("hystart_detect", bits.unwrap_or(3).to_string()));
            }
            _ => self.beyond.push(format!("{parameter} = {}", shown(value))),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.at_load.is_empty()
    }

    /// Whether the module has all of them.
    pub(super) fn are_taken(&self) -> bool {
        self.beyond.is_empty()
    }

    /// Behind the name of the module.
    pub(super) fn at_load(&self) -> String {
        self.at_load.iter().map(|one| format!(" {one}")).collect()
    }

    /// Commands that write the files.
    pub(super) fn written(&self) -> String {
        let module = &self.module;
        let files = self.files.iter();
        files
            .map(|(name, value)| format!("echo {value} > /sys/module/{module}/parameters/{name}; "))
            .collect()
    }

    /// As sentences behind what the command needs.
    pub(super) fn said(&self) -> String {
        let mut text = match self.beyond.as_slice() {
            [] => String::new(),
            beyond => format!(" Linux's {} has no {}.", self.module, beyond.join(" and no ")),
        };
        if !self.said.is_empty() {
            text.push_str(&format!(" Parameters: {}.", self.said.join("; ")));
        }
        text
    }
}
