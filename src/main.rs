//! The `alice` programme: reads the command line and hands over.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
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
