//! `cargo run -p lockstep`: sessions until one differs, or so many as are asked for; or one from a file again.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

use clap::Parser;
use dualrun::library;
use lockstep::lab::Lab;
use lockstep::record::Record;

/// Sessions of socket calls at random, each natively and under sovia at once
#[derive(Parser)]
struct Options {
    /// The first seed
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// How many seeds
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// Steps of a session; else 40 to 150, by seed
    #[arg(long)]
    steps: Option<usize>,
    /// Go on after a difference
    #[arg(long)]
    all: bool,
    /// Compare the kernel with itself
    #[arg(long)]
    native: bool,
    /// Cut down so many of each kind
    #[arg(long, default_value_t = 1)]
    each: u32,
    /// Run the steps in this file, again
    #[arg(long)]
    replay: Option<PathBuf>,
    /// How often, with --replay
    #[arg(long, default_value_t = 1)]
    times: usize,
    /// Print each step and what it came to
    #[arg(long)]
    verbose: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("lockstep: {error}");
            ExitCode::from(2)
        }
    }
}

fn read(file: &Path) -> io::Result<Record> {
    fs::read_to_string(file)?.parse().map_err(io::Error::other)
}

fn named(file: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", file.display()))
}

fn run(options: &Options) -> io::Result<bool> {
    let program = env::current_exe()?;
    let target = program
        .ancestors()
        .nth(2)
        .unwrap_or_else(|| Path::new("target"));
    let library = match options.native {
        true => None,
        false => Some(library::under_test(target).map_err(io::Error::other)?),
    };
    let mut lab = Lab::new(library)?;
    lab.verbose = options.verbose;
    let mut differ = 0;
    let mut kinds = BTreeMap::new();
    if let Some(file) = &options.replay {
        let record = read(file).map_err(|error| named(file, error))?;
        for _ in 0..options.times {
            if let Some(difference) = lab.replay(&record)? {
                differ += 1;
                println!("{difference}");
            }
        }
    } else {
        for seed in options.from..options.from + options.seeds {
            let length = options.steps.unwrap_or_else(|| usual_length(seed));
            if let Some(mut finding) = lab.search(seed, length)? {
                differ += 1;
                // One of a kind is enough to read.
                let count = kinds.entry(finding.difference.class()).or_insert(0);
                *count += 1;
                if *count <= options.each {
                    lab.cut(&mut finding)?;
                }
                println!("seed {seed}, {finding}\n");
                if !options.all {
                    break;
                }
            }
        }
    }
    for ((call, kernel, sovia), count) in &kinds {
        println!("{count:6} × {call}: {kernel}, under sovia {sovia}");
    }
    print!("{}", lab.tally);
    println!("{differ} differ");
    Ok(differ == 0)
}

fn usual_length(seed: u64) -> usize {
    40 + usize::try_from(seed % 12).unwrap_or(0) * 10
}
