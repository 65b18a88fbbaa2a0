//! Every MUST and SHOULD of RFC 9293 has a test that names it, or a reason; `docs/rfc9293.md` is the table.

mod requirements;

use requirements::Requirements;

const RFC: Requirements = Requirements {
    rfc: 9293,
    identifiers: "Identifiers are those of the RFC's appendix B; the words are ours.",
    reasons: &[
        (
            "MUST-51",
            "Source routes are not offered: networks drop packets that carry one (RFC 7126 4.3).",
        ),
        (
            "MUST-52",
            "Source routes are not offered: networks drop packets that carry one (RFC 7126 4.3).",
        ),
        (
            "MUST-53",
            "Source routes are not offered: networks drop packets that carry one (RFC 7126 4.3).",
        ),
        (
            "SHLD-13",
            "Advice to applications; nothing here uses urgent data.",
        ),
        (
            "SHLD-23",
            "Advice to applications; nothing here changes the traffic class of a connection.",
        ),
        ("SHLD-24", "Source routes are not offered."),
    ],
    missing: &[],
};

#[test]
fn every_must_and_should_has_a_test_or_a_reason() {
    let counts = RFC.check();
    assert!(counts["MUST"].0 >= 66 && counts["SHOULD"].0 >= 28, "{counts:?}");
}

#[test]
fn the_table_is_current() {
    RFC.check_page();
}
