//! `cargo bench`: what `alice bench` measures. `cargo bench -- paced-piper --turns 40` chooses.

use std::process::{Command, ExitCode};

fn main() -> std::io::Result<ExitCode> {
    // Cargo passes `--bench` to every benchmark.
    let args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let status = Command::new(env!("CARGO_BIN_EXE_alice")).arg("bench").args(args).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
