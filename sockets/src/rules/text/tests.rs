use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use sys::stream::Size;

use super::*;

const REDIS: Program<'_> = Program {
    executable: b"/usr/bin/redis-server",
    invoked: b"/usr/local/bin/cache",
};

fn decide(text: &str, peer: &str, port: u16) -> (Upgrade, u16) {
    let rules = Rules::parse(text).expect("well-formed");
    let decision = rules
        .ask(&REDIS, peer.parse().expect("an address"), port)
        .decision;
    (decision.upgrade, decision.number)
}

#[test]
fn the_first_rule_that_fits_decides() {
    let text = "2 /etc/x;3 never p=redis-* s=6379;9 always a=127.0.0.0/8;12 never";
    assert_eq!(decide(text, "127.0.0.1", 6379), (Upgrade::Never, 1));
    assert_eq!(decide(text, "127.0.0.1", 80), (Upgrade::Always, 2));
    assert_eq!(decide(text, "10.0.0.1", 80), (Upgrade::Never, 3));
    let rules = Rules::parse(text).expect("well-formed");
    assert_eq!((rules.line_of(2), rules.line_of(4)), (9, 0));
}

#[test]
fn without_a_rule_it_is_when_possible() {
    for text in ["2 f", "2 f;", "2 f;4 never p=nginx"] {
        assert_eq!(decide(text, "::1", 1), (Upgrade::WhenPossible, 0), "{text}");
    }
}

#[test]
fn alternatives_are_of_one_kind() {
    let text = "2 f;2 never p=nginx p=redis-* s=1-9 s=20";
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
        let text = format!("2 f;2 never p={pattern}");
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
        "2",
        "1 f",
        "3 f",
        "2 f turns=x",
        "2 f colour=2",
        "2 f;x never",
        "2 f;3 perhaps",
        "2 f;3 never q=1",
        "2 f;3 never s=70000",
        "2 f;3 never a=10",
        "2 f;3 never p=",
        "2 f;3",
        "2 f;3 p=x",
        "2 f;3 never always",
        "2 f;3 never p=x ring=65536",
        "2 f;3 ring=65535",
        "2 f;3 spin=-1",
        "2 f;3 turns=0",
        "2 f;3 turns=1 turns=1",
        "2 f never",
        "2 f turns=1 s=1",
    ] {
        assert!(Rules::parse(text).is_err(), "{text}");
    }
}

#[test]
fn what_is_said_of_all_stands_in_the_head() {
    let rules = Rules::parse("2 f turns=2 bytes=9 spin=0 ring=65536").expect("well-formed");
    let settings = Settings {
        turns: 2,
        bytes: 9,
        learns: false,
        spin_ns: Some(0),
        ring: Size::LEAST,
    };
    let answer = rules.ask(&REDIS, LOOPBACK, 1);
    assert_eq!((answer.settings, rules.file()), (settings, "f"));
    assert_eq!(answer, rules.of_program(&REDIS));
}

#[test]
fn each_key_has_its_rule() {
    let text = "2 f turns=3 spin=5;1 ring=65536 s=6379;2 never spin=7 p=nginx;3 always spin=0 a=127.0.0.1;4 spin=9 p=redis-*;5 never ring=131072";
    let rules = Rules::parse(text).expect("well-formed");
    let numbers = |answer: Answer| Key::ALL.map(|key| answer.number(key));
    let here = rules.ask(&REDIS, Ipv4Addr::LOCALHOST.into(), 6379);
    assert_eq!(numbers(here), [3, 0, 0, 3, 1]);
    assert_eq!(here.decision.upgrade, Upgrade::Always);
    let Settings {
        turns,
        bytes,
        learns,
        spin_ns,
        ring,
    } = here.settings;
    assert!(!learns, "something is said of turns");
    assert_eq!(
        (turns, bytes, spin_ns, ring),
        (3, 1 << 20, Some(0), Size::LEAST)
    );
    let elsewhere = rules.ask(&REDIS, LOOPBACK, 80);
    assert_eq!(numbers(elsewhere), [5, 0, 0, 4, 5]);
    assert_eq!(elsewhere, rules.of_program(&REDIS));
    let said = rules.of_some(&REDIS);
    assert_eq!(
        Key::ALL.map(|key| said.has(key)),
        [true, false, false, true, true]
    );
    let other = Program::default();
    assert_eq!(rules.of_program(&other).settings.spin_ns, Some(5));
}

fn words() -> impl Strategy<Value = Words> {
    let some = proptest::option::of::<std::ops::Range<u32>>;
    (
        some(0..3),
        some(1..99),
        some(1..99),
        some(0..99),
        some(16..25),
    )
        .prop_map(|(upgrade, turns, bytes, spin_ns, ring)| Words {
            upgrade: upgrade.map(|at| Upgrade::ALL[at as usize]),
            turns,
            bytes: bytes.map(u64::from),
            spin_ns,
            ring: ring.and_then(|bits| Size::new(1 << bits)),
        })
}

proptest! {
    #[test]
    fn words_are_read_as_they_were_written(all in words(), rules in proptest::collection::vec(words(), 0..4)) {
        let said: Vec<_> = rules.into_iter().filter(|words| *words != Words::default()).collect();
        let all = Words { upgrade: None, ..all };
        let written: String = said.iter().map(|words| format!(";7{words} s=80")).collect();
        let text = format!("2 f{all}{written}");
        let read = Rules::parse(&text).expect("what was written");
        prop_assert_eq!(read.words(), all);
        let read_rules: Vec<_> = read.iter().map(|(_, rule)| rule.words).collect();
        prop_assert_eq!(&read_rules, &said);
        // The first of those that say something of it decides over each key.
        let answer = read.ask(&REDIS, LOOPBACK, 80);
        for key in Key::ALL {
            let first = said.iter().position(|words| words.keys().has(key));
            prop_assert_eq!(usize::from(answer.number(key)), first.map_or(0, |at| at + 1));
        }
        let expected = said.iter().fold(Words::default(), |words, more| words.or(more)).or(&all);
        prop_assert_eq!(answer.settings, Settings::of(&expected));
        prop_assert_eq!(answer.decision.upgrade, expected.upgrade.unwrap_or_default());
    }

    #[test]
    fn any_text_is_read(text in "2 f( [a-z]{1,5}=[0-9]{1,4})?(;[0-9a-z =./:;*-]{0,40}){0,4}") {
        takes(&text);
    }

    #[test]
    fn words_in_any_order_are_read(
        words in proptest::collection::vec(proptest::sample::select(PIECES), 0..12),
    ) {
        takes(&format!("2 f{}", words.concat()));
    }

    #[test]
    fn any_bytes_are_read(text in any::<String>()) {
        takes(&text);
        takes(&format!("2 {text}"));
    }
}

/// Whatever it is, nobody panics, and each answer is a rule of it.
fn takes(text: &str) {
    let Ok(rules) = Rules::parse(text) else {
        return;
    };
    let answer = rules.ask(&REDIS, LOOPBACK, 1);
    let count = rules.iter().count();
    assert!(
        Key::ALL
            .iter()
            .all(|&key| usize::from(answer.number(key)) <= count)
    );
    assert!(answer.settings.turns > 0 && answer.settings.bytes > 0);
    let _ = rules.of_program(&REDIS);
}

const PIECES: &[&str] = &[
    ";",
    ";1",
    ";2 never",
    " always",
    " turns=1",
    " bytes=18446744073709551615",
    " spin=4294967295",
    " ring=65536",
    " ring=3",
    " p=*",
    " a=::1",
    " s=1-9",
    " ",
    "=",
    "\u{e4}",
];

const LOOPBACK: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);
