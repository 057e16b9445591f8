use proptest::prelude::*;

use super::super::sample;
use super::*;

fn shown(filter: &str) -> Vec<u32> {
    let filter = Filter::parse(filter).unwrap_or_else(|mistake| panic!("{mistake}"));
    let rows = sample::look().rows;
    rows.iter()
        .filter(|row| filter.fits(row))
        .filter_map(|row| row.fd)
        .collect()
}

#[test]
fn fields_and_operators() {
    for (filter, fds) in [
        ("", &[8, 9, 5][..]),
        ("sport = :6379", &[8, 9]),
        ("sport 6379", &[8, 9]),
        ("dport=40001", &[8]),
        ("dport >= 40002", &[9, 5]),
        ("src = 127.0.0.0/8", &[8, 9]),
        ("dst != ::1", &[8, 9]),
        ("path = shm", &[8]),
        ("path = tcp", &[9, 5]),
        ("path = shm/*", &[8]),
        ("state = young", &[5]),
        ("reason = io-uring", &[9]),
        ("reason = 24", &[9]),
        ("reason != 24", &[8, 5]),
        ("pid = 200", &[5]),
        ("program = redis-*", &[8, 9]),
        ("rule = always", &[9]),
        ("rule = none", &[8, 5]),
        ("received > 1G", &[5]),
        ("sent <= 100", &[5]),
        ("origin = connected", &[5]),
        ("fd lt 9", &[8, 5]),
    ] {
        assert_eq!(shown(filter), fds, "{filter}");
    }
}

#[test]
fn half_a_path_is_enough() {
    let mut rows = sample::look().rows;
    rows.extend(sample::vis());
    for (filter, paths) in [
        ("path = shm", &["shm/ring", "shm/extended"][..]),
        ("path = iwarp", &["iwarp/packet"]),
        ("path = ring", &["shm/ring"]),
        (
            "path = extended or path = packet",
            &["iwarp/packet", "shm/extended"],
        ),
        ("path = iwarp/packet", &["iwarp/packet"]),
        ("path = shm/*", &["shm/ring", "shm/extended"]),
        ("state = via and not path = packet", &["shm/extended"]),
        (
            "state = via and reason = 0",
            &["iwarp/packet", "shm/extended"],
        ),
    ] {
        let filter = Filter::parse(filter).unwrap_or_else(|mistake| panic!("{mistake}"));
        let fit = rows.iter().filter(|row| filter.fits(row));
        let fit: Vec<_> = fit.map(|row| row.path.as_ref()).collect();
        assert_eq!(fit, paths, "{filter:?}");
    }
}

#[test]
fn and_binds_closer_than_or_and_not_closest() {
    for (filter, fds) in [
        ("path = shm or pid = 200 and sport = 81", &[8][..]),
        ("(path = shm or pid = 200) and sport = 80", &[5]),
        ("pid = 100 path = tcp", &[9]),
        ("not path = shm and pid = 100", &[9]),
        ("not (path = shm and pid = 100)", &[9, 5]),
        ("! pid=100 || dport == 40001", &[8, 5]),
        ("path=tcp&&!sport=80", &[9]),
        ("sport=80||!path=tcp", &[8, 5]),
        ("not not pid 100", &[8, 9]),
    ] {
        assert_eq!(shown(filter), fds, "{filter}");
    }
}

#[test]
fn mistakes_are_told_with_their_place() {
    let said: Vec<_> = [
        "prt = 5",
        "sport = http",
        "sport =",
        "(pid = 5",
        "pid = 5)",
        "pid = 5 or",
        "path > tcp",
        "path = udp",
        "state = open",
        "reason = why",
        "reason = 999",
        "dst = host",
        "src = 10.0.0.1/8",
        "sent > 5X",
        "sport = :6379 and ünd",
        "= 5",
        "sport => 5",
    ]
    .into_iter()
    .map(|filter| Filter::parse(filter).expect_err(filter).to_string())
    .collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn processes_are_told_apart_by_what_does_not_change() {
    let processes = sample::look().processes;
    for (filter, pids) in [
        ("", &[100, 200][..]),
        ("pid = 100", &[100]),
        ("program = nginx or pid < 101", &[100, 200]),
        ("not program = redis-*", &[200]),
        ("pid = 100 and program = nginx", &[]),
    ] {
        let filter = Filter::parse(filter).unwrap_or_else(|mistake| panic!("{mistake}"));
        assert!(filter.is_of_processes());
        let fitting = processes
            .iter()
            .filter(|process| filter.fits_process(process));
        assert_eq!(fitting.map(|process| process.pid).collect::<Vec<_>>(), pids);
    }
    for filter in [
        "path = tcp",
        "pid = 1 or sport = 5",
        "not (program = a fd = 3)",
    ] {
        let filter = Filter::parse(filter).unwrap_or_else(|mistake| panic!("{mistake}"));
        assert!(!filter.is_of_processes());
    }
}

/// A filter and what it means, written out with all parentheses.
fn expression() -> impl Strategy<Value = (String, Filter)> {
    let test = (
        0u32..3,
        proptest::sample::select(vec!["=", "!=", "<", ">="]),
    )
        .prop_map(|(pid, operator)| {
            let text = format!("pid {operator} {pid}");
            let test = Filter::Test(Test {
                field: Field::Pid,
                operator: Operator::find(operator).expect("one of them"),
                value: Value::Number(pid.into()),
            });
            (text, test)
        });
    test.prop_recursive(4, 24, 2, |inner| {
        prop_oneof![
            inner
                .clone()
                .prop_map(|(text, filter)| (format!("not ({text})"), Filter::Not(filter.into()))),
            (inner.clone(), inner.clone()).prop_map(|((a, left), (b, right))| (
                format!("({a}) and ({b})"),
                Filter::And(left.into(), right.into())
            )),
            (inner.clone(), inner).prop_map(|((a, left), (b, right))| (
                format!("({a})or({b})"),
                Filter::Or(left.into(), right.into())
            )),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_is_what_is_meant((text, filter) in expression()) {
        prop_assert_eq!(Filter::parse(&text), Ok(filter));
    }

    #[test]
    fn any_text_is_read(text in "\\PC{0,60}") {
        if let Err(mistake) = Filter::parse(&text) {
            prop_assert!(mistake.at <= text.len() && text.is_char_boundary(mistake.at));
        }
    }

    #[test]
    fn any_words_are_read(words in proptest::collection::vec(
        proptest::sample::select(vec!["not", "and", "or", "(", ")", "pid", "=", "5", "path", "tcp", "<"]), 0..300)) {
        let _ = Filter::parse(&words.join(" "));
    }
}
