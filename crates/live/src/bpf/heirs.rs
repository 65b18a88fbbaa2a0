//! Namespaces that have a congestion control as their default without having been asked: they were made while it was that of the machine.

use super::place::Found;
use super::{Attached, Place, Program};
use crate::Error;
use std::io;

/// What `list` says of so many of them, and `detach` from one place, which leaves them; nothing, if there are none.
pub(super) fn told(count: usize, left: bool) -> String {
    let namespaces = match count {
        0 => return String::new(),
        1 => String::from("one namespace that inherited it"),
        more => format!("{more} namespaces that inherited it"),
    };
    match left {
        true => format!("still the default of {namespaces}: detach without a place reaches it"),
        false => format!("also the default of {namespaces}"),
    }
}

/// Gives them the default that a new namespace gets now, as far as this can be found out: that of the first process's namespace, or one that was
/// there before, or that of this namespace.
///
/// # Errors
/// The kernel takes none of those for one of them.
pub(super) fn put_back(
    program: Program,
    control: &str,
    heirs: Vec<Found>,
    taken: &[Attached],
) -> Result<Vec<Attached>, Error> {
    let before = taken.iter().map(|attached| attached.previous.clone());
    let here = Place::Here.find().and_then(|here| here.default_control());
    let wanted: Vec<String> = Found::default_of_new_ones()
        .into_iter()
        .chain(before)
        .chain(here)
        .chain(["cubic", "reno"].map(String::from))
        .filter(|name| !name.is_empty() && name != control)
        .collect();
    let one = |found: Found| {
        let mut refused = None;
        for name in &wanted {
            match found.set_default_control(name) {
                Ok(()) => {
                    return Ok(Attached {
                        program,
                        place: found.label(),
                        settings: String::new(),
                        previous: name.clone(),
                        state: String::from("had inherited it"),
                        counters: Vec::new(),
                    });
                }
                Err(error) => refused = Some(error),
            }
        }
        Err(refused
            .unwrap_or_else(|| Error::new("no other congestion control is known", io::ErrorKind::NotFound)))
    };
    heirs.into_iter().map(one).collect()
}
