//! Every MUST and SHOULD of RFC 9768 has a test that names it, or a reason; `docs/rfc9768.md` is the table.

mod requirements;

use requirements::Requirements;

const RFC: Requirements = Requirements {
    rfc: 9768,
    identifiers: "The RFC has no identifiers of its own: numbers and words are ours.",
    reasons: &[
        (
            "AE-6",
            "Both are switches of their own (`sack`, `dsack`), on in the profiles that know Accurate ECN.",
        ),
        (
            "AE-19",
            "No memory of failed attempts: each connection asks anew, which the RFC wants in most cases anyway.",
        ),
        (
            "AE-66",
            "As in Linux the option is sent to peers that send it: others would not read it, and it costs 12 bytes.",
        ),
        (
            "AE-81",
            "Cannot come up: the first SYN-ACK ends the handshake of a client, and flags of later ones are ignored (3.1.5).",
        ),
    ],
    missing: &[],
};

#[test]
fn every_must_and_should_has_a_test_or_a_reason() {
    let counts = RFC.check();
    assert!(counts["MUST"].0 >= 52 && counts["SHOULD"].0 >= 20, "{counts:?}");
}

#[test]
fn the_table_is_current() {
    RFC.check_page();
}
