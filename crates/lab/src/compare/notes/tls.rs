//! A note where pages over TCP without TLS stand beside pages over QUIC, which has it.

use fleetfoot_sim::spec::{GroupSpec, Traffic};

/// That pages are not comparable: those over TCP need fewer round trips than pages do that are as protected as those over QUIC.
pub(super) fn without_tls(groups: &[GroupSpec]) -> Option<String> {
    let named = |which: fn(&GroupSpec) -> bool| {
        let names = groups.iter().filter(|group| which(group));
        names.map(|group| group.name.as_str()).collect::<Vec<_>>()
    };
    let plain = named(|group| matches!(group.traffic, Traffic::Web(_)) && group.tls.is_none());
    let quic = named(|group| matches!(group.traffic, Traffic::QuicWeb(_)));
    if plain.is_empty() || quic.is_empty() {
        return None;
    }
    Some(format!(
        "pages of {} come over TCP without TLS, those of {} over QUIC, which includes it; with tls = \"1.3\" each new connection over TCP takes \
         one round trip more, as it does for HTTPS: docs/quic.md",
        plain.join(", "),
        quic.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Scenario, Setting};

    fn note(first: &str, second: &str) -> Option<String> {
        let text = format!(
            "[network]\nkind = \"dumbbell\"\nbottleneck = {{ rate = \"10 Mbit/s\", delay = \"10 ms\" }}\n\
             [[traffic]]\nname = \"one\"\nthink = \"1 s\"\n{first}\n[[traffic]]\nname = \"two\"\nthink = \"1 s\"\n{second}\n"
        );
        let scenario = Scenario::parse("test.toml", &text).expect("well formed");
        let resolved = scenario.resolve(&Setting::none()).expect("complete");
        without_tls(&resolved.spec.groups)
    }

    #[test]
    fn only_tls_over_tcp_makes_pages_comparable_with_those_over_quic() {
        let plain = "kind = \"web\"";
        assert_eq!(note(plain, plain), None);
        if !fleetfoot_sim::spec::QUIC_BUILT {
            return; // such a scenario is refused
        }
        let quic = "kind = \"quic-web\"";
        let said = note(plain, quic).expect("not the same");
        assert!(
            said.starts_with("pages of one come over TCP without TLS, those of two over QUIC"),
            "{said}"
        );
        assert_eq!(note("kind = \"web\"\ntls = \"1.3\"", quic), None);
        assert_eq!(note(quic, quic), None);
    }
}
