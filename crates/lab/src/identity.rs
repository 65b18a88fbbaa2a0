//! What identifies a run: everything that it depends on besides its seed and the program.

use fleetfoot_core::tcp::Config;
use fleetfoot_sim::spec::Spec;
use std::sync::Arc;

/// The hash of the serialised specification, hexadecimal. Recorded connections stand in it by the identity of their recording,
/// since there may be millions; of the program's plug-ins, those that the run names.
pub(crate) fn of(spec: &Spec) -> String {
    let told = with_its_plugins(spec);
    let bytes = postcard::to_stdvec(told.as_ref().unwrap_or(spec))
        .expect("a specification has only values that can be written");
    blake3::hash(&bytes).to_hex().to_string()
}

/// The specification without the plug-ins that it does not name; `None`: it has none.
fn with_its_plugins(spec: &Spec) -> Option<Spec> {
    if spec.plugins.is_empty() {
        return None;
    }
    let mut told = spec.clone();
    let queues: Vec<&str> = spec.links.iter().map(|link| link.queue).collect();
    told.plugins = spec.plugins.named("", &queues);
    let name_own = |config: &mut Arc<Config>| {
        let own = config.plugins.named(config.congestion_control, &[]);
        Arc::make_mut(config).plugins = own;
    };
    for group in &mut told.groups {
        name_own(&mut group.sender);
        name_own(&mut group.receiver);
    }
    Some(told)
}
