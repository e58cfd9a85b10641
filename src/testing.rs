//! What tests share: where the recordings and the weights are, or why a test is skipped.

use std::path::PathBuf;

use crate::config::Home;

/// A file of the fixtures beside the repository; prints why the test is skipped when it is absent.
pub(crate) fn fixture(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("ALICE_FIXTURES").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/fixtures"),
        PathBuf::from,
    );
    let path = root.join(name);
    let there = path.is_file();
    if !there {
        eprintln!("skipped: fixture {name} is not here");
    }
    there.then_some(path)
}

/// The home whose weights tests use, when `file` of `model` is there; prints why the test is skipped
/// when it is absent.
pub(crate) fn weights(model: &str, file: &str) -> Option<Home> {
    let home = Home::from_env();
    match crate::models::locate(&home, model, file) {
        Ok(_) => Some(home),
        Err(missing) => {
            eprintln!("skipped: {missing}");
            None
        }
    }
}
