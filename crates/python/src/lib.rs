//! The compiled part of the Python package `fleetfoot`: what `python/fleetfoot` is written upon.
//!
//! Users see the classes and functions of `python/fleetfoot`; this module converts between them and the laboratory
//! ([`fleetfoot_lab`]) and releases the interpreter while runs go on. Every name that Python sees here is declared in
//! `python/fleetfoot/_native.pyi`.
//!
//! The crate is a member of the workspace and needs no Python to be checked, linted or documented: PyO3 builds for the
//! stable interface of Python 3.11 (`abi3-py311`), for which it needs neither an interpreter nor headers, and
//! `.cargo/config.toml` says that the extension is not linked with libpython. It has no tests of its own (`test = false`), since
//! only an interpreter can load it: they are in `python/tests`, and `scripts/python.sh` runs them. `make run` does not compile it.

#![expect(
    clippy::needless_pass_by_value,
    reason = "PyO3 hands arguments of functions over by value, as it made them of Python's objects"
)]

mod capture;
mod comparison;
mod convert;
mod drill;
mod error;
mod explain;
mod gym;
mod mechanism;
mod plugin;
mod reproduction;
mod scenario;
mod study;
mod sweep;
#[cfg(feature = "parquet")]
mod table;
mod work;

/// The compiled part of the package `fleetfoot`: use that package, and not this module.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::capture::import_capture;
    #[pymodule_export]
    use crate::comparison::Comparison;
    #[pymodule_export]
    use crate::drill::drill;
    #[pymodule_export]
    use crate::explain::explain;
    #[pymodule_export]
    use crate::gym::{Steered, steered_fields};
    #[pymodule_export]
    use crate::mechanism::mechanisms;
    #[pymodule_export]
    use crate::plugin::{
        Ack, Connection, Context, Event, Limit, Link, Packet, Sent, register, registered, unregister,
    };
    #[pymodule_export]
    use crate::reproduction::{experiments, reproduce};
    #[pymodule_export]
    use crate::scenario::Scenario;
    #[pymodule_export]
    use crate::study::{compare, recommend, run};
    #[pymodule_export]
    use crate::sweep::{Sweep, SweepWorker, Sweeping, sweep_figures};
    #[cfg(feature = "parquet")]
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::work::limit_memory;
    use fleetfoot_lab::memory;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::plugin::say_where_names_are_known();
        memory::limit_to(memory::default_ceiling());
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
