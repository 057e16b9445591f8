use proptest::prelude::*;
use sockets::rules::Upgrade;
use sockets::rules::text::{Key, Program, Rules};

use super::*;

fn config(text: &str) -> Result<Config, Error> {
    Config::parse("/sovia.toml".into(), text.as_bytes())
}

fn mistake(text: &str) -> String {
    config(text).expect_err(text).to_string()
}

#[test]
fn an_example_of_everything() {
    let config = config(EXAMPLE).unwrap_or_else(|error| panic!("{error}"));
    insta::assert_snapshot!(config.text().replace(';', "\n;"));
    let variables = environment_in(Some(&config), |_| None);
    let said = variables.iter().filter(|(_, value)| value.is_some());
    let said: Vec<_> = said.map(|(name, _)| *name).collect();
    let [(packet, packet_mark), (iwarp, iwarp_mark)] = VARIABLES;
    assert_eq!(said, [RULES, packet, packet_mark, iwarp, iwarp_mark]);
}

/// Files are not merged.
#[test]
fn what_an_outer_file_said_does_not_count() {
    let [(packet, mark), (iwarp, _)] = VARIABLES;
    let of = |config: Option<&Config>, outer: &[(&str, &str)]| {
        let value = |name: &str| outer.iter().find(|(of, _)| *of == name);
        let variables = environment_in(config, |name| value(name).map(|(_, value)| value.into()));
        let variables = variables.into_iter().filter(|(name, _)| *name != RULES);
        variables.collect::<Vec<_>>()
    };
    let none = of(None, &[]);
    let outer = config("[packet]\nvariant = \"combine\"\n").expect("no mistake");
    let outer = of(Some(&outer), &[]);
    let outer: Vec<_> = outer
        .iter()
        .filter_map(|(name, value)| Some((*name, value.as_deref()?.to_str()?)))
        .collect();
    assert_eq!(outer, [(packet, "combine"), (mark, "combine")]);
    // A file without the key, or none.
    assert_eq!(of(None, &outer), none);
    assert!(none.iter().all(|(_, value)| value.is_none()));
    let inner = config("[packet]\nvariant = \"dacks\"\n").expect("no mistake");
    let said = of(Some(&inner), &outer);
    assert!(said.contains(&(packet, Some("dacks".into()))), "{said:?}");
    assert!(said.contains(&(iwarp, None)), "{said:?}");
    // What the user says between them counts more, there and in what is run from there.
    let said = of(Some(&inner), &[(packet, "block"), (mark, "combine")]);
    assert!(said.iter().all(|(name, _)| *name != packet), "{said:?}");
    assert!(said.contains(&(mark, None)), "{said:?}");
}

/// What stands in docs/configuration.md.
const EXAMPLE: &str = include_str!("example.toml");

#[test]
fn nothing_is_a_configuration() {
    assert_eq!(config("").expect("empty").text(), "2 /sovia.toml");
}

#[test]
fn a_file_behind_a_closed_folder_is_absent_unless_it_is_the_administrators() {
    let closed = io::Error::from(io::ErrorKind::PermissionDenied);
    let none = io::Error::from(io::ErrorKind::NotFound);
    let of_another = Path::new("/nobody/.config/sovia/sovia.toml");
    assert!(is_absent(of_another, &closed));
    assert!(!is_absent(Path::new(SYSTEM), &closed));
    assert!(is_absent(Path::new(SYSTEM), &none));
}

#[test]
fn what_no_program_could_be_started_with_is_refused() {
    let rules = |count: usize, len: usize| -> String {
        let rule = |number: usize| {
            let name = format!("/{number:0len$}");
            format!("[[rule]]\nprogram = \"{name}\"\nupgrade = \"never\"\n")
        };
        (0..count).map(rule).collect()
    };
    assert_eq!(
        config(&rules(1000, 100)).expect("it fits").rule_count(),
        1000
    );
    // Each rule is its line, `never`, and its name.
    let told = mistake(&rules(1000, 150));
    assert!(told.starts_with("/sovia.toml:2"), "{told}");
    assert!(told.contains("take more than the 131059 bytes"), "{told}");
    let counts: Vec<_> = (1..=1000).collect();
    let most = counts.partition_point(|&count| config(&rules(count, 150)).is_ok());
    let said = config(&rules(most, 150)).expect("as above").text();
    let mut command = std::process::Command::new("true");
    let status = command.env_clear().env(RULES, said).status();
    assert!(status.expect("it starts").success());
}

#[test]
fn mistakes_are_told_with_their_place() {
    let mistakes = [
        "[[rule]]\nupgrade = \"nver\"",
        "[[rule]]\nupgrade = true",
        "[[rule]]\nprogram = \"x\"",
        "[[rule]]\nupgrade = \"never\"\nprot = 3",
        "[[rules]]\nupgrade = \"never\"",
        "[[rule]]\nupgrade = \"never\"\nport = 0",
        "[[rule]]\nupgrade = \"never\"\nport = [1, 70000]",
        "[[rule]]\nupgrade = \"never\"\nport = \"9-8\"",
        "[[rule]]\nupgrade = \"never\"\nport = \"http\"",
        "[[rule]]\nupgrade = \"never\"\nport = 1.5",
        "[[rule]]\nupgrade = \"never\"\nport = []",
        "[[rule]]\nupgrade = \"never\"\npeer = \"10.0.0.1/8\"",
        "[[rule]]\nupgrade = \"never\"\npeer = [\"::1\", \"localhost\"]",
        "[[rule]]\nupgrade = \"never\"\nprogram = \"a b\"",
        "[[rule]]\nupgrade = \"never\"\nprogram = \"\"",
        "[[rule]]\nupgrade = \"never\"\n\n[[rule]]\nport = 1\nupgrade = \"always\"",
        "[[rule]]\nspin-us = 0\n\n[[rule]]\nupgrade = \"always\"\n\n[[rule]]\nport = 1\nupgrade = \"never\"",
        "[[rule]]\nspin-us = 0\n\n[[rule]]\nport = 1\nspin-us = 3\nupgrade = \"never\"",
        "[[rule]]\nport = 1\nspin-us = 1001",
        "[[rule]]\nport = 1\nafter-turns = 0",
        "[[rule]]\nport = 1\nafter-bytes = -1",
        "[[rule]]\nport = 1\nbuffer-bytes = 65537",
        "[[rule]]\nport = 1\nbuffer-bytes = 33554432",
        "[[rule]]\nport = 1\nbuffer_bytes = 65536",
        "[[rule]]\nport = 1\nspin-us = \"20\"",
        "# nothing\n[[rule]]",
        "[connection]\nafter-turns = 0",
        "[connection]\nspin-us = 5000",
        "[connection]\nafter_bytes = 5",
        "[connection]\nbuffer-bytes = 100000",
        "[connection]\nbuffer-bytes = 32768",
        "[connection]\nafter-turns = 1.5",
        "[packet]\nvariant = \"combine,fast\"",
        "[packet]\nnic = \"sim\"",
        "[iwarp]\naddress = \"::1\"",
        "rule = 3",
        "[rule]\nupgrade = \"never\"",
        "[[rule]\nupgrade",
    ];
    let said: Vec<_> = mistakes
        .iter()
        .map(|text| format!("{text}\n→ {}\n", mistake(text)))
        .collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn a_file_without_an_end_is_not_read_to_its_end() {
    let error = Config::find(Some(Path::new("/dev/zero"))).expect_err("zeros");
    assert_eq!(error.to_string(), "/dev/zero: larger than 1 MiB");
}

/// As the documentation has it, without the text between: the rule that decides over each key.
fn model(config: &Config, name: &str, peer: IpAddr, port: u16) -> [u16; Key::ALL.len()] {
    let fits = |rule: &Rule| {
        let program = rule.programs.is_empty() || rule.programs.iter().any(|of| of == name);
        let peers: Vec<IpAddr> = rule
            .peers
            .iter()
            .map(|peer| peer.parse().expect("an address"))
            .collect();
        let ports =
            rule.ports.is_empty() || rule.ports.iter().any(|&(a, b)| (a..=b).contains(&port));
        program && (peers.is_empty() || peers.contains(&peer)) && ports
    };
    let rules = &config.contents.rules;
    Key::ALL.map(|key| {
        let decides = |rule: &Rule| fits(rule) && rule.words.keys().has(key);
        rules.iter().position(decides).map_or(0, |at| at as u16 + 1)
    })
}

use std::net::IpAddr;

fn one_rule() -> impl Strategy<Value = String> {
    let list = |words: &'static [&'static str]| {
        proptest::sample::subsequence(words, 0..=words.len())
            .prop_map(|words| (!words.is_empty()).then(|| words.join(", ")))
    };
    (
        list(&["\"a\"", "\"b\""]),
        list(&["\"::1\"", "\"10.0.0.1\""]),
        list(&["1", "\"2-3\""]),
        proptest::option::of(proptest::sample::select(&Upgrade::ALL)),
        proptest::sample::subsequence(OTHER_WORDS, 0..=OTHER_WORDS.len()),
    )
        .prop_map(|(program, peer, port, upgrade, others)| {
            let mut text = "[[rule]]\n".to_owned();
            if let Some(upgrade) = upgrade {
                text.push_str(&format!("upgrade = \"{}\"\n", upgrade.name()));
            }
            text.extend(others);
            for (key, list) in [("program", program), ("peer", peer), ("port", port)] {
                if let Some(list) = list {
                    text.push_str(&format!("{key} = [{list}]\n"));
                }
            }
            text
        })
}

const OTHER_WORDS: &[&str] = &[
    "after-turns = 3\n",
    "after-bytes = 7\n",
    "spin-us = 0\n",
    "buffer-bytes = 65536\n",
];

proptest! {
    #[test]
    fn the_library_decides_as_the_file_says(
        rules in proptest::collection::vec(one_rule(), 0..4),
        name in "[abc]",
        peer in proptest::sample::select(&["::1", "10.0.0.1", "127.0.0.1"]),
        port in 1u16..5,
    ) {
        // Rules behind some that fit always are refused, and some say nothing.
        if let Ok(config) = config(&rules.concat()) {
            let text = config.text();
            let rules = Rules::parse(&text).expect("what we write");
            let path = format!("/bin/{name}");
            let program = Program { executable: path.as_bytes(), invoked: b"/" };
            let peer = peer.parse().expect("an address");
            let answer = rules.ask(&program, peer, port);
            prop_assert_eq!(Key::ALL.map(|key| answer.number(key)), model(&config, &name, peer, port));
        }
    }

    #[test]
    fn any_text_is_read(text in "(\\[\\[?rule\\]\\]?|\\[connection\\])?\n([a-z-]{1,8} = [0-9\"\\[\\]a-z/.]{0,9}\n){0,4}") {
        let _ = config(&text);
    }
}
