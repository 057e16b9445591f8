use std::path::Path;

use crate::{sovia, stdout_of, text};

/// The rows of a run over `transports`, both ways of waiting, two sizes, on one CPU, which every machine has.
fn rows(transports: &str, pattern: &str) -> Vec<serde_json::Value> {
    let stdout = stdout_of(&format!(
        "vi netpipe --transport {transports} --cpus one --sizes 8,64k --run-ms 1 --json - {pattern}"
    ));
    let report: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    report["rows"].as_array().expect("rows").clone()
}

#[test]
fn each_pattern_measures_each_column() {
    for pattern in ["", "--stream", "--bidirectional", "--vis 3"] {
        let rows = rows("tcp,unix,vi", pattern);
        // Two sizes; six columns, and three more with other maximum transfer sizes.
        assert_eq!(rows.len(), 18, "{pattern}");
        for row in rows {
            assert_eq!(
                row["runs_ns"].as_array().map(Vec::len),
                Some(5),
                "{pattern}: {row}"
            );
            assert!(
                row["one_way_ns"].as_f64().is_some_and(|ns| ns > 10.0),
                "{pattern}: {row}"
            );
        }
    }
}

#[test]
fn tables_curves_and_machine() {
    let directory = std::env::temp_dir().join(format!("sovia-netpipe-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let svg = directory.join("curves.svg");
    let stdout = stdout_of(&format!(
        "vi netpipe --transport unix --cpus one --min 7 --max 9 --run-ms 1 --svg {}",
        svg.display()
    ));
    for expected in [
        "Latency of 8 bytes",
        "Throughput in GB/s, ping-pong, one CPU",
        "machine: ",
        "TCP cubic",
    ] {
        assert!(stdout.contains(expected), "no {expected:?} in\n{stdout}");
    }
    assert!(
        std::fs::read_to_string(&svg)
            .expect("curves")
            .contains("Unix poll")
    );
    std::fs::remove_dir_all(&directory).expect("the directory is still there");
}

#[test]
fn misuse_is_refused_with_status_2() {
    for arguments in [
        "vi netpipe --min 9 --max 8",
        "vi netpipe --sizes 0",
        "vi netpipe --sizes 99999999999999999999",
        "vi netpipe --runs 4",
        "vi netpipe --quick --max 8",
        "vi netpipe --stream --bidirectional",
        "vi netpipe --mtu 1",
        "vi netpipe --vis 0",
        "vi netpipe --transport carrier-pigeon",
        "vi",
        "",
    ] {
        let output = sovia(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(output.stdout.is_empty(), "{arguments}");
        assert!(!output.stderr.is_empty(), "{arguments}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    assert!(!Path::new("/nowhere").exists());
    let output = sovia(
        "vi netpipe --transport unix --cpus one --sizes 8 --run-ms 1 --json /nowhere/at.json",
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("/nowhere/at.json"),
        "{}",
        text(&output.stderr)
    );
}
