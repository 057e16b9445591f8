use proptest::prelude::*;

use super::*;

const REDIS: Program<'_> = Program {
    executable: b"/usr/bin/redis-server",
    invoked: b"/usr/local/bin/cache",
};

fn decide(text: &str, peer: &str, port: u16) -> (Upgrade, u16) {
    let rules = Rules::parse(text).expect("well-formed");
    let decision = rules.decide(&REDIS, peer.parse().expect("an address"), port);
    (decision.upgrade, decision.number)
}

#[test]
fn the_first_rule_that_fits_decides() {
    let text = "1 /etc/x;3 never p=redis-* s=6379;9 always a=127.0.0.0/8;12 never";
    assert_eq!(decide(text, "127.0.0.1", 6379), (Upgrade::Never, 1));
    assert_eq!(decide(text, "127.0.0.1", 80), (Upgrade::Always, 2));
    assert_eq!(decide(text, "10.0.0.1", 80), (Upgrade::Never, 3));
    let rules = Rules::parse(text).expect("well-formed");
    assert_eq!((rules.line_of(2), rules.line_of(4)), (9, 0));
}

#[test]
fn without_a_rule_it_is_when_possible() {
    for text in ["1 f", "1 f;", "1 f;4 never p=nginx"] {
        assert_eq!(decide(text, "::1", 1), (Upgrade::WhenPossible, 0), "{text}");
    }
}

#[test]
fn alternatives_are_of_one_kind() {
    let text = "1 f;2 never p=nginx p=redis-* s=1-9 s=20";
    for (port, number) in [(1, 1), (9, 1), (10, 0), (20, 1)] {
        assert_eq!(decide(text, "::1", port).1, number, "{port}");
    }
}

#[test]
fn a_program_has_two_names_and_two_paths() {
    for (pattern, fits) in [
        ("redis-server", true),
        ("cache", true),
        ("/usr/bin/*", true),
        ("/usr/local/*", true),
        ("/bin/*", false),
        ("usr", false),
        ("*", true),
    ] {
        let text = format!("1 f;2 never p={pattern}");
        assert_eq!(decide(&text, "::1", 1).1 == 1, fits, "{pattern}");
    }
}

#[test]
fn networks_hold_what_begins_like_them() {
    for (network, address, holds) in [
        ("10.0.0.0/8", "10.255.0.1", true),
        ("10.0.0.0/8", "11.0.0.1", false),
        ("10.0.0.0/8", "::ffff:10.1.1.1", true),
        ("0.0.0.0/0", "1.2.3.4", true),
        ("0.0.0.0/0", "::1", false),
        ("::/0", "1.2.3.4", true),
        ("::1", "::1", true),
        ("fe80::/10", "febf::1", true),
        ("fe80::/10", "fec0::1", false),
    ] {
        let network = Network::parse(network).expect("a network");
        let address = address.parse().expect("an address");
        assert_eq!(network.holds(address), holds, "{network:?} {address}");
    }
    for wrong in [
        "10.0.0.0/33",
        "::/129",
        "10.0.0/8",
        "host",
        "",
        "/8",
        "::1/-1",
    ] {
        assert_eq!(Network::parse(wrong), None, "{wrong}");
    }
    let exact = |text| Network::parse(text).expect("a network").is_too_exact();
    assert!(exact("10.0.0.1/8") && !exact("10.0.0.0/8") && !exact("10.0.0.1"));
}

#[test]
fn what_is_not_in_this_form_is_refused() {
    for text in [
        "",
        "1",
        "2 f",
        "1 f turns=x",
        "1 f colour=2",
        "1 f;x never",
        "1 f;3 perhaps",
        "1 f;3 never q=1",
        "1 f;3 never s=70000",
        "1 f;3 never a=10",
        "1 f;3 never p=",
    ] {
        assert!(Rules::parse(text).is_err(), "{text}");
    }
}

#[test]
fn settings_stand_in_the_head() {
    let rules = Rules::parse("1 f turns=2 bytes=9 spin=0 ring=65536").expect("well-formed");
    let settings = Settings {
        turns: 2,
        bytes: 9,
        spin_ns: Some(0),
        ring: Size::LEAST,
    };
    assert_eq!((rules.settings(), rules.file()), (settings, "f"));
}

proptest! {
    #[test]
    fn any_text_is_read(text in "1 f( [a-z]{1,5}=[0-9]{1,4})?(;[0-9a-z =./:;*-]{0,40}){0,4}") {
        if let Ok(rules) = Rules::parse(&text) {
            let decision = rules.decide(&REDIS, "::1".parse().expect("an address"), 1);
            prop_assert!(usize::from(decision.number) <= rules.iter().count());
        }
    }
}
