//! What identifies a run: everything that it depends on besides its seed and the program.

use fleetfoot_sim::spec::Spec;

/// The hash of the serialised specification, hexadecimal. Recorded connections stand in it by the identity of their recording,
/// since there may be millions.
pub(crate) fn of(spec: &Spec) -> String {
    let bytes = postcard::to_stdvec(spec).expect("a specification has only values that can be written");
    blake3::hash(&bytes).to_hex().to_string()
}
