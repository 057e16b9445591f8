//! Both ends asleep though there is something to do: looked for among many connections, ways of waiting, and busy processes.

use std::process::{Child, Command, Stdio};

use hostile::is_long;
use hostile::program::Program;

#[test]
fn nobody_sleeps_for_ever() {
    let runs = if is_long() { 200 } else { 4 };
    let program = Program::compile("stress");
    let _hogs = [Hog::start(), Hog::start()];
    for seed in 0..runs {
        let connections = [3, 8, 1, 40][seed % 4];
        // Two seconds; who has not moved for twenty stands still.
        let output = program
            .preloaded()
            .args(["2", &seed.to_string(), &connections.to_string(), "20"])
            .output()
            .expect("it was compiled");
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "seed {seed}: {said}{errors}");
        println!("seed {seed}, {connections} connections: {said}");
    }
}

/// A process that is always busy, until it is dropped.
struct Hog(Child);

impl Hog {
    fn start() -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", "while :; do :; done"]);
        Self(shell.stdout(Stdio::null()).spawn().expect("a shell"))
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        // It is ours, and has not been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
