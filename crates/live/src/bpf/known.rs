//! Congestion controls that the kernel knows as long as somebody in this process needs them, and not longer: nothing is pinned, so that
//! nothing of them is left when the process ends, however it ends.

use super::{Program, Settings, link_control, object};
use crate::Error;
use crate::SenderSwitches;
use libbpf_rs::Link;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A congestion control that the kernel knows while this lives. Connections that have chosen it keep it.
#[derive(Debug)]
pub struct Known {
    _link: Link,
}

/// Congestion controls that are in use by this process, so that several runs at once share one.
static LIVING: Mutex<Vec<(Program, Weak<Known>)>> = Mutex::new(Vec::new());

/// Makes a congestion control known to the kernel, so that sockets can choose it. One that the kernel knows already, by
/// [`attach`](super::attach) or from another process, is left to who made it known: then there is nothing to hold.
///
/// # Errors
/// The kernel refuses, or `program` is no congestion control.
pub fn make_known(program: Program) -> Result<Option<Arc<Known>>, Error> {
    let mut living = LIVING.lock().unwrap_or_else(PoisonError::into_inner);
    living.retain(|(_, known)| known.strong_count() > 0);
    let ours = living.iter().find(|(other, _)| *other == program);
    if let Some(known) = ours.and_then(|(_, known)| known.upgrade()) {
        return Ok(Some(known));
    }
    let known = SenderSwitches::congestion_controls();
    if known.iter().any(|name| program.control() == Some(name)) {
        return Ok(None);
    }
    let mut object = object::load(program, &Settings::default(), 0)?;
    let known = Arc::new(Known {
        _link: link_control(program, &mut object)?,
    });
    living.push((program, Arc::downgrade(&known)));
    Ok(Some(known))
}
