//! The `alice` programme: reads the command line and hands over.

use std::process::ExitCode;

fn main() -> ExitCode {
    // ONNX Runtime 1.32 for Linux reports its use to its maker unless it finds this when it is
    // loaded; its API for that comes too late (a device id and a database had been made by then).
    // SAFETY: no other thread runs yet that could read the environment.
    unsafe { std::env::set_var("ORT_DISABLE_TELEMETRY", "1") };
    run()
}

#[tokio::main]
async fn run() -> ExitCode {
    // reqwest is built without a provider of its own. An error would mean that one is installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match alice::cli::run(alice::cli::Cli::from_process()).await {
        Ok(code) => code,
        Err(error) => {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            alice::cli::exit_code(&error)
        }
    }
}
